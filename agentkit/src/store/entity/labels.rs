use sea_orm::entity::prelude::*;

/// What a session has touched: never removed. Of each label two calls at most are kept, so that
/// one can be left out when it is decided again.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "agentkit_labels")]
pub struct Model {
    /// Digest of the session, as in `scopes`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope: Vec<u8>,
    #[sea_orm(primary_key, auto_increment = false)]
    pub label: String,
    /// The call that brought it.
    #[sea_orm(primary_key, auto_increment = false)]
    pub call_id: String,
    pub added_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
