use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "agentkit_runs")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub format: i32,
    pub root_id: String,
    pub parent_id: Option<String>,
    pub parent_call: Option<String>,
    pub path: String,
    pub agent: String,
    pub definition: Vec<u8>,
    pub status: String,
    pub ending: Option<String>,
    pub cancelled_at: Option<i64>,
    pub thread_id: Option<String>,
    pub thread_position: Option<i64>,
    pub tenant: Option<String>,
    pub requester_id: String,
    pub requester: String,
    pub secret: Vec<u8>,
    pub options: String,
    pub step: i32,
    pub messages: i32,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub worked: i64,
    pub worked_since: i64,
    pub error: Option<String>,
    pub lease_owner: Option<String>,
    pub lease_epoch: i64,
    pub lease_until: i64,
    pub wake_at: Option<i64>,
    pub journal_sequence: i64,
    pub journal_head: Option<Vec<u8>>,
    pub rooted: i64,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
