use std::{sync::Arc, time::Duration};

use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, DbErr, Statement,
};
use sea_orm_migration::MigratorTrait as _;

use super::{StoreError, migration::Migrator};
use crate::call::Timestamp;

/// A database that holds runs. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) inner: Arc<Connections>,
}

#[derive(Debug)]
pub(super) struct Connections {
    /// SQLite has one writer at a time: a pool of one keeps transactions in order instead of
    /// letting them wait for a lock.
    pub(super) writer: DatabaseConnection,
    pub(super) reader: DatabaseConnection,
}

/// How long a statement waits for another process's transaction.
const BUSY: Duration = Duration::from_secs(15);

impl Store {
    /// Opens a database by its URL, such as `sqlite://refund_desk.db?mode=rwc`, and brings its
    /// tables up to date.
    ///
    /// SQLite is opened with write-ahead logging and `synchronous=FULL`: a commit that is lost
    /// with the power could mean a second execution.
    ///
    /// # Errors
    ///
    /// When the URL names no database that this build knows, the database cannot be opened, or
    /// it was written by a newer version.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        if !url.starts_with("sqlite:") {
            return Err(StoreError::Url {
                url: without_password(url),
                why: "this build knows `sqlite:` URLs only, such as `sqlite://agentkit.db?mode=rwc`",
            });
        }
        let memory = url.contains(":memory:") || url.contains("mode=memory");
        let doing = "open the database";
        let writer = connect(url, 1)
            .await
            .map_err(StoreError::while_trying(doing))?;
        // A second connection to a database in memory would be another database.
        let reader = if memory {
            writer.clone()
        } else {
            connect(url, 4)
                .await
                .map_err(StoreError::while_trying(doing))?
        };
        let store = Self {
            inner: Arc::new(Connections { writer, reader }),
        };
        store.migrate().await?;
        Ok(store)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        let doing = "bring its tables up to date";
        let mut last = None;
        // Two instances may start at once: the second finds the tables when it tries again.
        for pause in [0, 20, 100, 500, 2000] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            match Migrator::up(&self.inner.writer, None).await {
                Ok(()) => return Ok(()),
                Err(DbErr::Custom(text)) if text.contains("missing") => {
                    return Err(StoreError::Newer { found: text });
                }
                Err(error) => last = Some(error),
            }
        }
        let source = last.unwrap_or_else(|| DbErr::Custom("no attempt was made".to_owned()));
        Err(StoreError::Database { doing, source })
    }

    /// The time on the database's clock.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        now(&self.inner.reader).await
    }
}

async fn connect(url: &str, connections: u32) -> Result<DatabaseConnection, DbErr> {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .min_connections(1)
        .test_before_acquire(false)
        .sqlx_logging(false)
        .idle_timeout(None::<Duration>)
        .max_lifetime(None::<Duration>)
        .acquire_timeout(BUSY * 2);
    #[cfg(feature = "sqlite")]
    options.map_sqlx_sqlite_opts(|options| {
        use sea_orm::sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
        options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY)
    });
    Database::connect(options).await
}

pub(super) async fn now(connection: &impl ConnectionTrait) -> Result<Timestamp, StoreError> {
    let doing = "read the clock";
    let sql = match connection.get_database_backend() {
        DbBackend::Sqlite => "SELECT CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER) AS now",
        DbBackend::Postgres => {
            "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS now"
        }
        _ => "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) AS now",
    };
    let statement = Statement::from_string(connection.get_database_backend(), sql);
    let row = connection
        .query_one_raw(statement)
        .await
        .map_err(StoreError::while_trying(doing))?
        .ok_or_else(|| StoreError::corrupt("time", "now", "the database gave none"))?;
    let micros = row
        .try_get::<i64>("", "now")
        .map_err(StoreError::while_trying(doing))?;
    Ok(Timestamp::from_micros(micros))
}

fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => url.to_owned(),
    }
}
