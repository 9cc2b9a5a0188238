use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "agentkit_roots")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub sequence: i64,
    pub previous: Option<Vec<u8>>,
    pub heads: String,
    pub root: Vec<u8>,
    pub digest: Vec<u8>,
    pub created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
