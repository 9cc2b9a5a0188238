use std::{sync::Arc, time::Duration};

use sea_orm::{
    ConnectOptions, Database, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    IsolationLevel, SqliteTransactionMode, TransactionOptions, TransactionTrait as _,
};

use super::{
    StoreError, backend,
    group::Group,
    handle::{DECLARED, Handle},
    migration,
};
use crate::call::Timestamp;

/// A database that holds runs. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) inner: Arc<Connections>,
}

#[derive(Debug)]
pub(super) struct Connections {
    /// SQLite has one writer at a time: a pool of one keeps transactions in order instead of
    /// letting them wait for a lock. Elsewhere the same pool as the reader's.
    pub(super) writer: Handle<DatabaseConnection>,
    pub(super) reader: Handle<DatabaseConnection>,
    /// Where commits are shared, as on SQLite.
    pub(super) group: Option<Group>,
}

/// How a store is opened.
///
/// ```no_run
/// # async fn open() -> Result<(), agentkit::store::StoreError> {
/// use agentkit::store::Store;
///
/// let store = Store::options()
///     .prefix("approvals_")
///     .open("sqlite://shop.db?mode=rwc")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is opened until `open` or `adopt` is called"]
pub struct StoreOptions {
    prefix: String,
    connections: u32,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            prefix: DECLARED.to_owned(),
            connections: 16,
        }
    }
}

/// How long a statement waits for another process's transaction.
const BUSY: Duration = Duration::from_secs(15);

/// With the longest name of an index, still short enough for every database.
const LONGEST_PREFIX: usize = 24;

impl StoreOptions {
    /// What the names of the tables begin with: `agentkit_` unless said otherwise. Lower-case
    /// letters, digits and underscores, at most 24.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The most connections that are opened to a server: 16 unless said otherwise.
    pub const fn connections(mut self, most: u32) -> Self {
        self.connections = most;
        self
    }

    /// Opens a database by its URL and brings its tables up to date.
    ///
    /// # Errors
    ///
    /// As [`Store::open`], and when the prefix is none.
    pub async fn open(self, url: &str) -> Result<Store, StoreError> {
        let backend = backend_of(url)?;
        let prefix = self.checked_prefix()?;
        let doing = "open the database";
        let connect = async |most| {
            // Several instances that turn on SQLite's write-ahead log at once are told "busy" at
            // once, whatever their busy timeout.
            let mut retry = backend::Retry::new();
            loop {
                match connect(url, backend, most).await {
                    Ok(connection) => break Ok(connection),
                    Err(source) => {
                        let error = StoreError::Database { doing, source };
                        if backend != DbBackend::Sqlite {
                            break Err(error);
                        }
                        retry.after(error).await?;
                    }
                }
            }
        };
        let (writer, reader) = if backend == DbBackend::Sqlite {
            let writer = connect(1).await?;
            // A second connection to a database in memory would be another database.
            let memory = url.contains(":memory:") || url.contains("mode=memory");
            let reader = if memory {
                writer.clone()
            } else {
                connect(4).await?
            };
            (writer, reader)
        } else {
            let pool = connect(self.connections.max(2)).await?;
            (pool.clone(), pool)
        };
        Store::on(writer, reader, prefix).await
    }

    /// Uses the application's own connection, and brings the tables in its database up to date.
    ///
    /// A SQLite database should be opened with write-ahead logging, `synchronous=FULL` and a
    /// busy timeout, as [`Store::open`] does.
    ///
    /// # Errors
    ///
    /// When the prefix is none, the database fails, or it was written by a newer version.
    pub async fn adopt(self, connection: DatabaseConnection) -> Result<Store, StoreError> {
        let prefix = self.checked_prefix()?;
        Store::on(connection.clone(), connection, prefix).await
    }

    fn checked_prefix(&self) -> Result<Option<Arc<str>>, StoreError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if self.prefix.len() > LONGEST_PREFIX || !self.prefix.bytes().all(allowed) {
            return Err(StoreError::Prefix {
                prefix: self.prefix.clone(),
            });
        }
        Ok((self.prefix != DECLARED).then(|| self.prefix.as_str().into()))
    }
}

impl Store {
    /// Opens a database by its URL and brings its tables up to date:
    ///
    /// - `sqlite://refund_desk.db?mode=rwc` (feature `sqlite`), with write-ahead logging and
    ///   `synchronous=FULL`: a commit that is lost with the power could mean a second execution;
    /// - `postgres://user:password@host/database` (feature `postgres`), and whatever speaks its
    ///   protocol;
    /// - `mysql://user:password@host/database` (feature `mysql`), `MariaDB` too.
    ///
    /// # Errors
    ///
    /// When the URL names no database that this build knows, the database cannot be opened, or
    /// it was written by a newer version.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Self::options().open(url).await
    }

    /// Opens a database in another way than the usual one.
    pub fn options() -> StoreOptions {
        StoreOptions::default()
    }

    async fn on(
        writer: DatabaseConnection,
        reader: DatabaseConnection,
        prefix: Option<Arc<str>>,
    ) -> Result<Self, StoreError> {
        let sqlite = writer.get_database_backend() == DbBackend::Sqlite;
        migration::migrate(&writer, prefix.as_deref().unwrap_or(DECLARED)).await?;
        Ok(Self {
            inner: Arc::new(Connections {
                writer: Handle::new(writer, prefix.clone()),
                reader: Handle::new(reader, prefix),
                group: sqlite.then(Group::default),
            }),
        })
    }

    /// The time on the database's clock.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        backend::now(&self.inner.reader).await
    }
}

/// Begins a transaction that may write.
///
/// Every transaction of this library locks the run's row before it reads anything that it relies
/// on, so each statement has to see what was committed before it, not before the transaction.
pub(super) async fn begin(
    connection: &DatabaseConnection,
) -> Result<DatabaseTransaction, StoreError> {
    let options = match connection.get_database_backend() {
        DbBackend::Sqlite => TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        },
        _ => TransactionOptions {
            isolation_level: Some(IsolationLevel::ReadCommitted),
            ..TransactionOptions::default()
        },
    };
    let begun = if connection.get_database_backend() == DbBackend::MySql {
        // The driver learns that a transaction is open from the answer to its statement. Were this
        // dropped between the two, the connection would go back to its pool with a transaction
        // that nobody ends: what others read through it would be old, and what they write lost.
        let connection = connection.clone();
        tokio::spawn(async move { connection.begin_with_options(options).await })
            .await
            .unwrap_or_else(|ended| Err(DbErr::Custom(format!("the driver ended early: {ended}"))))
    } else {
        connection.begin_with_options(options).await
    };
    begun.map_err(StoreError::while_trying("begin a transaction"))
}

fn backend_of(url: &str) -> Result<DbBackend, StoreError> {
    let refuse = |why| {
        Err(StoreError::Url {
            url: without_password(url),
            why,
        })
    };
    let (scheme, _) = url.split_once(':').unwrap_or((url, ""));
    match scheme {
        "sqlite" if cfg!(feature = "sqlite") => Ok(DbBackend::Sqlite),
        "postgres" | "postgresql" if cfg!(feature = "postgres") => Ok(DbBackend::Postgres),
        "mysql" | "mariadb" if cfg!(feature = "mysql") => Ok(DbBackend::MySql),
        "sqlite" => refuse("this build has no SQLite; build agentkit with the feature `sqlite`"),
        "postgres" | "postgresql" => {
            refuse("this build has no PostgreSQL; build agentkit with the feature `postgres`")
        }
        "mysql" | "mariadb" => {
            refuse("this build has no MySQL or MariaDB; build agentkit with the feature `mysql`")
        }
        _ => refuse(
            "a URL of a database begins with `sqlite:`, `postgres:` or `mysql:`, such as \
             `sqlite://agentkit.db?mode=rwc`",
        ),
    }
}

async fn connect(url: &str, backend: DbBackend, most: u32) -> Result<DatabaseConnection, DbErr> {
    let url = match url.strip_prefix("mariadb:") {
        Some(rest) => format!("mysql:{rest}"),
        None => url.to_owned(),
    };
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(most)
        .min_connections(1)
        // A dead connection is noticed by its first statement, and the transaction tried again.
        .test_before_acquire(false)
        .sqlx_logging(false)
        .acquire_timeout(BUSY * 2);
    if backend == DbBackend::Sqlite {
        options
            .idle_timeout(None::<Duration>)
            .max_lifetime(None::<Duration>);
    }
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

fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => url.to_owned(),
    }
}
