use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "agentkit_decisions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub call_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub nonce: Vec<u8>,
    #[sea_orm(primary_key, auto_increment = false)]
    pub approver_id: String,
    pub kind: String,
    pub fingerprint: Vec<u8>,
    pub approver: String,
    pub reason: Option<String>,
    pub content: Option<String>,
    pub decided_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
