//! The tables and their versions.
//!
//! Arguments, payloads and results are text, never a JSON column: those reorder keys and rewrite
//! numbers. Digests, nonces and secrets are bytes. Times are microseconds since the epoch, UTC.

use sea_orm_migration::prelude::*;

/// The version of what the rows mean. Written into each run; a run of a newer version is not
/// touched.
pub(super) const FORMAT: i32 = 1;

pub(super) struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(First)]
    }

    fn migration_table_name() -> DynIden {
        Alias::new("agentkit_migrations").into_iden()
    }
}

struct First;

impl MigrationName for First {
    fn name(&self) -> &'static str {
        "v1"
    }
}

fn table(name: &str) -> TableCreateStatement {
    // A start that was killed half-way is completed by the next one.
    Table::create()
        .table(Alias::new(name))
        .if_not_exists()
        .to_owned()
}

fn text(name: &str) -> ColumnDef {
    ColumnDef::new(Alias::new(name))
        .text()
        .not_null()
        .to_owned()
}

fn short(name: &str) -> ColumnDef {
    // Ids and names: short enough for an index on every back end.
    ColumnDef::new(Alias::new(name))
        .string_len(128)
        .not_null()
        .to_owned()
}

fn bytes(name: &str, len: u32) -> ColumnDef {
    ColumnDef::new(Alias::new(name))
        .var_binary(len)
        .not_null()
        .to_owned()
}

fn long(name: &str) -> ColumnDef {
    ColumnDef::new(Alias::new(name))
        .big_integer()
        .not_null()
        .to_owned()
}

fn int(name: &str) -> ColumnDef {
    ColumnDef::new(Alias::new(name))
        .integer()
        .not_null()
        .to_owned()
}

fn optional(mut column: ColumnDef) -> ColumnDef {
    column.null().to_owned()
}

fn index(table: &str, name: &str, columns: &[&str]) -> IndexCreateStatement {
    let mut index = Index::create()
        .name(name)
        .table(Alias::new(table))
        .if_not_exists()
        .to_owned();
    for column in columns {
        index.col(Alias::new(*column));
    }
    index
}

fn key(columns: &[&str]) -> IndexCreateStatement {
    let mut key = Index::create();
    for column in columns {
        key.col(Alias::new(*column));
    }
    key
}

#[async_trait::async_trait]
impl MigrationTrait for First {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in tables() {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        Ok(())
    }
}

fn tables() -> Vec<TableCreateStatement> {
    let mut tables = work();
    tables.extend(record());
    tables
}

/// What runs consist of.
fn work() -> Vec<TableCreateStatement> {
    vec![
        table("agentkit_runs")
            .col(short("id").primary_key())
            .col(int("format"))
            .col(short("root_id"))
            .col(optional(short("parent_id")))
            .col(optional(short("parent_call")))
            .col(text("path"))
            .col(short("agent"))
            .col(bytes("definition", 32))
            .col(short("status"))
            .col(optional(short("ending")))
            .col(optional(long("cancelled_at")))
            .col(optional(short("thread_id")))
            .col(optional(long("thread_position")))
            .col(optional(short("tenant")))
            .col(short("requester_id"))
            .col(text("requester"))
            .col(bytes("secret", 32))
            .col(text("options"))
            .col(int("step"))
            .col(int("messages"))
            .col(long("input_tokens"))
            .col(long("output_tokens"))
            .col(long("worked"))
            .col(long("worked_since"))
            .col(optional(text("error")))
            .col(optional(short("lease_owner")))
            .col(long("lease_epoch"))
            .col(long("lease_until"))
            .col(optional(long("wake_at")))
            .col(long("journal_sequence"))
            .col(optional(bytes("journal_head", 32)))
            .col(long("created_at"))
            .col(long("updated_at"))
            .to_owned(),
        table("agentkit_messages")
            .col(short("run_id"))
            .col(int("sequence"))
            .col(int("step"))
            .col(text("body"))
            .col(long("created_at"))
            .primary_key(&mut key(&["run_id", "sequence"]))
            .to_owned(),
        table("agentkit_calls")
            .col(short("id").primary_key())
            .col(short("run_id"))
            .col(int("step"))
            .col(int("position"))
            .col(text("provider_id"))
            .col(short("tool"))
            .col(short("state"))
            .col(long("version"))
            .col(optional(text("arguments")))
            .col(bytes("definition", 32))
            .col(optional(bytes("input_schema", 32)))
            .col(optional(bytes("policy_slice", 32)))
            .col(optional(bytes("action", 32)))
            .col(optional(bytes("nonce", 16)))
            .col(optional(bytes("fingerprint", 32)))
            .col(text("gate"))
            .col(int("quorum"))
            .col(optional(long("requested_at")))
            .col(optional(long("expires_at")))
            .col(optional(text("payload")))
            .col(optional(text("answer")))
            .col(optional(text("outcome")))
            .col(optional(long("epoch")))
            .col(ColumnDef::new(Alias::new("untold")).boolean().not_null())
            .col(long("created_at"))
            .col(long("updated_at"))
            .to_owned(),
    ]
}

/// What was decided, said and shown.
fn record() -> Vec<TableCreateStatement> {
    vec![
        table("agentkit_decisions")
            .col(short("call_id"))
            .col(bytes("nonce", 16))
            .col(short("approver_id"))
            .col(short("kind"))
            .col(bytes("fingerprint", 32))
            .col(text("approver"))
            .col(optional(text("reason")))
            .col(optional(text("content")))
            .col(long("decided_at"))
            .primary_key(&mut key(&["call_id", "nonce", "approver_id"]))
            .to_owned(),
        table("agentkit_journal")
            .col(short("run_id"))
            .col(long("sequence"))
            .col(short("event"))
            .col(text("body"))
            .col(optional(bytes("previous", 32)))
            .col(bytes("digest", 32))
            .col(long("created_at"))
            .primary_key(&mut key(&["run_id", "sequence"]))
            .to_owned(),
        table("agentkit_threads")
            .col(short("tenant"))
            .col(short("id"))
            .col(short("owner"))
            .col(long("position"))
            .col(long("created_at"))
            .primary_key(&mut key(&["tenant", "id"]))
            .to_owned(),
        table("agentkit_events")
            .col(short("run_id"))
            .col(long("sequence"))
            .col(text("body"))
            .primary_key(&mut key(&["run_id", "sequence"]))
            .to_owned(),
        table("agentkit_policy_versions")
            .col(bytes("digest", 32).primary_key())
            .col(short("agent"))
            .col(ColumnDef::new(Alias::new("built_in")).boolean().not_null())
            .col(text("body"))
            .col(long("created_at"))
            .to_owned(),
    ]
}

fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        // What an agent's inbox pages through: newest last, by key.
        index(
            "agentkit_runs",
            "agentkit_runs_by_status",
            &["agent", "status", "id"],
        ),
        index(
            "agentkit_runs",
            "agentkit_runs_by_requester",
            &["requester_id", "id"],
        ),
        index("agentkit_runs", "agentkit_runs_by_root", &["root_id", "id"]),
        // What a worker takes up: runs that were decided about, few at any time.
        index(
            "agentkit_runs",
            "agentkit_runs_by_wake",
            &["wake_at", "agent"],
        ),
        // A call is handed to one run, however often its own run is taken over.
        index(
            "agentkit_runs",
            "agentkit_runs_by_parent_call",
            &["parent_call"],
        )
        .unique()
        .to_owned(),
        index(
            "agentkit_runs",
            "agentkit_runs_by_thread",
            &["thread_id", "thread_position"],
        ),
        index(
            "agentkit_calls",
            "agentkit_calls_by_run",
            &["run_id", "step", "position"],
        ),
        index(
            "agentkit_calls",
            "agentkit_calls_by_expiry",
            &["state", "expires_at"],
        ),
        index(
            "agentkit_calls",
            "agentkit_calls_by_state",
            &["state", "requested_at", "id"],
        ),
    ]
}
