use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "agentkit_scopes")]
pub struct Model {
    /// Digest of what the scope is: a session, a person, a tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Vec<u8>,
    /// When something was admitted last.
    pub last_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
