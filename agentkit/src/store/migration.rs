//! The tables and their versions.
//!
//! Arguments, payloads and results are text, never a JSON column: those reorder keys and rewrite
//! numbers. Digests, nonces and secrets are bytes. Times are microseconds since the epoch, UTC.
//! Ids are compared byte for byte.

use std::time::Duration;

use sea_orm::{ConnectionTrait as _, DatabaseConnection, DbBackend, Statement};
use sea_orm_migration::{MigratorTraitSelf, prelude::*};

use super::{StoreError, backend::Retry, connect};
use crate::call::Digest;

/// The version of what the rows mean. Written into each run; a run of a newer version is not
/// touched.
pub(super) const FORMAT: i32 = 1;

/// How long an instance waits for another one that is changing the tables.
const PATIENCE: Duration = Duration::from_mins(1);

/// What finds the past of a session, a person and a tenant.
const PAST: [[&str; 4]; 3] = [
    ["session", "tool", "state", "updated_at"],
    ["requester_id", "tool", "state", "updated_at"],
    ["tenant", "tool", "state", "updated_at"],
];

/// The tables under one prefix.
struct Migrator {
    prefix: String,
    dialect: Dialect,
}

impl MigratorTraitSelf for Migrator {
    fn migrations(&self) -> Vec<Box<dyn MigrationTrait>> {
        let (prefix, dialect) = (self.prefix.clone(), self.dialect);
        vec![Box::new(First(Tables { prefix, dialect }))]
    }

    fn migration_table_name(&self) -> DynIden {
        Alias::new(format!("{}migrations", self.prefix)).into_iden()
    }
}

/// Brings the tables up to date, in one transaction where the database can, while other instances
/// that start at the same time wait.
pub(super) async fn migrate(
    connection: &DatabaseConnection,
    prefix: &str,
) -> Result<(), StoreError> {
    let mut retry = Retry::new();
    loop {
        match attempt(connection, prefix).await {
            Ok(()) => return Ok(()),
            Err(error) => retry.after(error).await?,
        }
    }
}

async fn attempt(connection: &DatabaseConnection, prefix: &str) -> Result<(), StoreError> {
    let dialect = Dialect::of(connection).await.map_err(failed)?;
    let migrator = Migrator {
        prefix: prefix.to_owned(),
        dialect,
    };
    let known = migrator
        .get_migration_with_status_read_only(connection)
        .await
        .map_err(failed)?;
    let applied = |file: &sea_orm_migration::Migration| {
        file.status() == sea_orm_migration::MigrationStatus::Applied
    };
    if known.iter().all(applied) {
        return Ok(());
    }
    // SQLite's immediate transaction is the lock.
    let tx = connect::begin(connection).await?;
    let lock = format!("{prefix}migrations");
    let backend = connection.get_database_backend();
    match backend {
        DbBackend::Postgres => {
            let sql = "SELECT pg_advisory_xact_lock($1)";
            let key = lock_number(&lock).into();
            tx.query_one_raw(Statement::from_sql_and_values(backend, sql, [key]))
                .await
                .map_err(failed)?;
            migrator.up(&tx, None).await.map_err(failed)?;
        }
        DbBackend::MySql => {
            // Changes of tables end a transaction here; the lock belongs to the connection.
            let sql = "SELECT COALESCE(GET_LOCK(MD5(CONCAT(COALESCE(DATABASE(), ''), '.', ?)), ?), 0) = 1 AS held";
            let values = [lock.as_str().into(), PATIENCE.as_secs().into()];
            let row = tx
                .query_one_raw(Statement::from_sql_and_values(backend, sql, values))
                .await
                .map_err(failed)?;
            let held = row.is_some_and(|row| row.try_get::<i64>("", "held") == Ok(1));
            if !held {
                return Err(StoreError::Busy);
            }
            let done = migrator.up(&tx, None).await;
            let sql = "DO RELEASE_LOCK(MD5(CONCAT(COALESCE(DATABASE(), ''), '.', ?)))";
            let values = [lock.into()];
            tx.execute_raw(Statement::from_sql_and_values(backend, sql, values))
                .await
                .map_err(failed)?;
            done.map_err(failed)?;
        }
        _ => migrator.up(&tx, None).await.map_err(failed)?,
    }
    tx.commit().await.map_err(failed)
}

/// Advisory locks of PostgreSQL are numbers.
fn lock_number(name: &str) -> i64 {
    let digest = Digest::of(format!("agentkit/lock/{name}").as_bytes());
    let (first, _) = digest.as_bytes().split_at(8);
    first
        .iter()
        .fold(0, |number, byte| number << 8 | i64::from(*byte))
}

fn failed(source: DbErr) -> StoreError {
    match source {
        DbErr::Custom(text) if text.contains("missing") => StoreError::Newer { found: text },
        source => StoreError::Database {
            doing: "bring its tables up to date",
            source,
        },
    }
}

/// What a database calls what the tables need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Sqlite,
    Postgres,
    MySql,
    MariaDb,
}

impl Dialect {
    async fn of(connection: &DatabaseConnection) -> Result<Self, DbErr> {
        match connection.get_database_backend() {
            DbBackend::Postgres => Ok(Self::Postgres),
            DbBackend::MySql => {
                let sql = Statement::from_string(DbBackend::MySql, "SELECT VERSION() AS version");
                let row = connection.query_one_raw(sql).await?;
                let version = row.map(|row| row.try_get::<String>("", "version"));
                let maria = version
                    .transpose()?
                    .is_some_and(|version| version.contains("MariaDB"));
                Ok(if maria { Self::MariaDb } else { Self::MySql })
            }
            _ => Ok(Self::Sqlite),
        }
    }

    fn text(self, name: &str) -> ColumnDef {
        let mut column = ColumnDef::new(Alias::new(name));
        match self {
            // `TEXT` ends at 64 KiB there.
            Self::MySql | Self::MariaDb => column.custom(Alias::new("longtext")),
            Self::Sqlite | Self::Postgres => column.text(),
        };
        column.not_null().to_owned()
    }

    /// Ids and names of ours: short enough for an index on every back end.
    fn short(self, name: &str) -> ColumnDef {
        self.string(name, 128)
    }

    /// Ids of people and tenants, which others made.
    fn foreign(self, name: &str) -> ColumnDef {
        self.string(name, 255)
    }

    fn string(self, name: &str, len: u32) -> ColumnDef {
        let mut column = ColumnDef::new(Alias::new(name));
        column.string_len(len).not_null();
        if self == Self::Postgres {
            column.extra("COLLATE \"C\"");
        }
        column
    }
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

fn key(columns: &[&str]) -> IndexCreateStatement {
    let mut key = Index::create();
    for column in columns {
        key.col(Alias::new(*column));
    }
    key
}

/// Names and kinds of what a migration makes.
struct Tables {
    prefix: String,
    dialect: Dialect,
}

impl Tables {
    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn table(&self, name: &str) -> TableCreateStatement {
        let mut table = Table::create();
        // A start that was killed half-way is completed by the next one.
        table.table(Alias::new(self.name(name))).if_not_exists();
        // Compared byte for byte, blanks at the end too.
        match self.dialect {
            Dialect::MariaDb => table.character_set("utf8mb4").collate("utf8mb4_nopad_bin"),
            Dialect::MySql => table.character_set("utf8mb4").collate("utf8mb4_0900_bin"),
            Dialect::Sqlite | Dialect::Postgres => &mut table,
        };
        table
    }

    async fn index(
        &self,
        manager: &SchemaManager<'_>,
        table: &str,
        name: &str,
        columns: &[&str],
        unique: bool,
    ) -> Result<(), DbErr> {
        let (table, name) = (self.name(table), self.name(name));
        // MySQL has no `IF NOT EXISTS` for an index, and a killed start may have made it.
        if manager.get_database_backend() == DbBackend::MySql
            && manager.has_index(&table, &name).await?
        {
            return Ok(());
        }
        let mut index = Index::create();
        index.name(name).table(Alias::new(table)).if_not_exists();
        for column in columns {
            index.col(Alias::new(*column));
        }
        if unique {
            index.unique();
        }
        manager.create_index(index).await
    }
}

struct First(Tables);

impl MigrationName for First {
    fn name(&self) -> &'static str {
        "v1"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for First {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in self.0.first() {
            manager.create_table(table).await?;
        }
        let indexes: [(_, _, &[_]); 12] = [
            // What an agent's inbox pages through, by key.
            ("runs", "runs_by_status", &["agent", "status", "id"]),
            ("runs", "runs_by_requester", &["requester_id", "id"]),
            ("runs", "runs_by_root", &["root_id", "id"]),
            // What a worker takes up: runs that were decided about, few at any time.
            ("runs", "runs_by_wake", &["wake_at", "agent"]),
            // A call is handed to one run, however often its own run is taken over.
            ("runs", "runs_by_parent_call", &["parent_call"]),
            ("runs", "runs_by_thread", &["thread_id", "thread_position"]),
            ("calls", "calls_by_run", &["run_id", "step", "position"]),
            // The past of a session, a person, a tenant, for facts that policies read.
            ("calls", "calls_by_session", &PAST[0]),
            ("calls", "calls_by_requester", &PAST[1]),
            ("calls", "calls_by_tenant", &PAST[2]),
            ("calls", "calls_by_expiry", &["state", "expires_at"]),
            ("calls", "calls_by_state", &["state", "requested_at", "id"]),
        ];
        for (table, name, columns) in indexes {
            let unique = name == "runs_by_parent_call";
            self.0.index(manager, table, name, columns, unique).await?;
        }
        Ok(())
    }
}

impl Tables {
    fn first(&self) -> Vec<TableCreateStatement> {
        let mut tables = self.work();
        tables.extend(self.record());
        tables
    }

    /// What runs consist of.
    fn work(&self) -> Vec<TableCreateStatement> {
        let text = |name| self.dialect.text(name);
        let short = |name| self.dialect.short(name);
        let foreign = |name| self.dialect.foreign(name);
        let table = |name| self.table(name);
        vec![
            table("runs")
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
                .col(optional(foreign("tenant")))
                .col(foreign("requester_id"))
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
                .col(long("rooted"))
                .col(long("created_at"))
                .col(long("updated_at"))
                .to_owned(),
            table("messages")
                .col(short("run_id"))
                .col(int("sequence"))
                .col(int("step"))
                .col(text("body"))
                .col(long("created_at"))
                .primary_key(&mut key(&["run_id", "sequence"]))
                .to_owned(),
            table("calls")
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
                .col(short("root_id"))
                .col(short("session"))
                .col(foreign("requester_id"))
                .col(foreign("tenant"))
                .col(long("admitted_at"))
                .col(long("created_at"))
                .col(long("updated_at"))
                .to_owned(),
        ]
    }

    /// What was decided, said and shown.
    fn record(&self) -> Vec<TableCreateStatement> {
        let text = |name| self.dialect.text(name);
        let short = |name| self.dialect.short(name);
        let foreign = |name| self.dialect.foreign(name);
        let table = |name| self.table(name);
        vec![
            table("decisions")
                .col(short("call_id"))
                .col(bytes("nonce", 16))
                .col(foreign("approver_id"))
                .col(short("kind"))
                .col(bytes("fingerprint", 32))
                .col(text("approver"))
                .col(optional(text("reason")))
                .col(optional(text("content")))
                .col(long("decided_at"))
                .primary_key(&mut key(&["call_id", "nonce", "approver_id"]))
                .to_owned(),
            table("journal")
                .col(short("run_id"))
                .col(long("sequence"))
                .col(short("event"))
                .col(text("body"))
                .col(optional(bytes("previous", 32)))
                .col(bytes("digest", 32))
                .col(long("created_at"))
                .primary_key(&mut key(&["run_id", "sequence"]))
                .to_owned(),
            table("threads")
                .col(foreign("tenant"))
                .col(short("id"))
                .col(foreign("owner"))
                .col(long("position"))
                .col(long("created_at"))
                .primary_key(&mut key(&["tenant", "id"]))
                .to_owned(),
            table("events")
                .col(short("run_id"))
                .col(long("sequence"))
                .col(text("body"))
                .primary_key(&mut key(&["run_id", "sequence"]))
                .to_owned(),
            table("scopes")
                .col(bytes("id", 32).primary_key())
                .col(long("last_at"))
                .to_owned(),
            table("labels")
                .col(bytes("scope", 32))
                .col(short("label"))
                .col(short("call_id"))
                .col(long("added_at"))
                .primary_key(&mut key(&["scope", "label", "call_id"]))
                .to_owned(),
            table("roots")
                .col(long("sequence").primary_key())
                .col(optional(bytes("previous", 32)))
                .col(text("heads"))
                .col(bytes("root", 32))
                .col(bytes("digest", 32))
                .col(long("created_at"))
                .to_owned(),
            table("policy_versions")
                .col(bytes("digest", 32).primary_key())
                .col(short("agent"))
                .col(ColumnDef::new(Alias::new("built_in")).boolean().not_null())
                .col(text("body"))
                .col(long("created_at"))
                .to_owned(),
        ]
    }
}
