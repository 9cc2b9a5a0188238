use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "agentkit_calls")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub run_id: String,
    pub step: i32,
    pub position: i32,
    pub provider_id: String,
    pub tool: String,
    pub state: String,
    pub version: i64,
    pub arguments: Option<String>,
    pub definition: Vec<u8>,
    pub input_schema: Option<Vec<u8>>,
    pub policy_slice: Option<Vec<u8>>,
    pub action: Option<Vec<u8>>,
    pub nonce: Option<Vec<u8>>,
    pub fingerprint: Option<Vec<u8>>,
    pub gate: String,
    pub quorum: i32,
    pub requested_at: Option<i64>,
    pub expires_at: Option<i64>,
    pub payload: Option<String>,
    pub answer: Option<String>,
    pub outcome: Option<String>,
    pub epoch: Option<i64>,
    pub untold: bool,
    /// Whose past the call belongs to: copied from its run, so that an index finds it.
    pub root_id: String,
    pub session: String,
    pub requester_id: String,
    pub tenant: String,
    /// When it was proposed, or started where it was.
    pub admitted_at: i64,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
