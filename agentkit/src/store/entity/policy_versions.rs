use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "agentkit_policy_versions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub digest: Vec<u8>,
    pub agent: String,
    pub built_in: bool,
    pub body: String,
    pub created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
