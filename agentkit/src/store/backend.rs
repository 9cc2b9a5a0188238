//! What differs between the databases: their clocks, and how they say "try again".

use std::time::{Duration, SystemTime};

use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
use sea_orm::{RuntimeErr, sqlx};

use super::StoreError;
use crate::call::Timestamp;

/// What a failed statement means for the transaction that it belonged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "mysql")),
    expect(dead_code, reason = "no database is built in")
)]
pub(super) enum Trouble {
    /// The transaction was undone by the database: the whole of it may be tried again.
    Again,
    /// The connection is gone: what was not committed is undone, and a commit that was under way
    /// may have happened.
    ConnectionLost,
    /// Anything else.
    Final,
}

/// What became of a transaction that was told to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitOutcome {
    Committed,
    /// The answer was lost: whether it is there has to be read.
    Unknown,
}

/// The time on the database's clock.
///
/// SQLite has no clock but that of the process it runs in.
pub(super) async fn now(connection: &impl ConnectionTrait) -> Result<Timestamp, StoreError> {
    let backend = connection.get_database_backend();
    let sql = match backend {
        DbBackend::Postgres => {
            "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS now"
        }
        DbBackend::MySql => "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) AS now",
        _ => return Ok(process_clock()),
    };
    let row = connection
        .query_one_raw(Statement::from_string(backend, sql))
        .await
        .map_err(StoreError::while_trying("read the clock"))?
        .ok_or_else(|| StoreError::corrupt("time", "now", "the database gave none"))?;
    let micros = row
        .try_get::<i64>("", "now")
        .map_err(StoreError::while_trying("read the clock"))?;
    Ok(Timestamp::from_micros(micros))
}

fn process_clock() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// What an error means where no database is built in: an application's own connection.
#[cfg(not(any(feature = "sqlite", feature = "postgres", feature = "mysql")))]
pub(super) const fn trouble(_: &DbErr) -> Trouble {
    Trouble::Final
}

/// What an error of the database means.
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub(super) fn trouble(error: &DbErr) -> Trouble {
    let source = match error {
        DbErr::Exec(RuntimeErr::SqlxError(source))
        | DbErr::Query(RuntimeErr::SqlxError(source))
        | DbErr::Conn(RuntimeErr::SqlxError(source)) => source.as_ref(),
        _ => return Trouble::Final,
    };
    match source {
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => Trouble::ConnectionLost,
        sqlx::Error::Database(error) => said(error.as_ref()),
        _ => Trouble::Final,
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
fn said(error: &dyn sqlx::error::DatabaseError) -> Trouble {
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return match error.number() {
            // Lock wait timeout, deadlock, and MariaDB's "record has changed since last read".
            1205 | 1213 | 1020 => Trouble::Again,
            // Server shutdown, connection killed.
            1053 | 1317 | 1927 | 2006 | 2013 => Trouble::ConnectionLost,
            _ => Trouble::Final,
        };
    }
    let Some(code) = error.code() else {
        return Trouble::Final;
    };
    match code.as_ref() {
        // PostgreSQL: serialization failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => Trouble::Again,
        // PostgreSQL: shutdowns, crash of another backend, connection failures.
        "57P01" | "57P02" | "57P03" | "08000" | "08003" | "08006" => Trouble::ConnectionLost,
        // SQLite: busy and locked, with their extended codes.
        code => match code.parse::<i32>().map(|code| code & 0xff) {
            Ok(5 | 6) => Trouble::Again,
            _ => Trouble::Final,
        },
    }
}

/// A whole transaction tried again, with jitter and not without end.
pub(super) struct Retry {
    attempts: u32,
    pause: Duration,
}

/// With the pauses below, about ten seconds.
const ATTEMPTS: u32 = 40;
const LONGEST: Duration = Duration::from_millis(400);

impl Retry {
    pub(super) const fn new() -> Self {
        Self {
            attempts: 0,
            pause: Duration::from_millis(2),
        }
    }

    /// Waits before the next attempt, or gives the error back where another one is pointless.
    pub(super) async fn after(&mut self, error: StoreError) -> Result<(), StoreError> {
        let again = match &error {
            StoreError::Busy => true,
            StoreError::Database { source, .. } => trouble(source) != Trouble::Final,
            _ => false,
        };
        self.attempts += 1;
        if !again || self.attempts > ATTEMPTS {
            return Err(error);
        }
        let random = getrandom::u32().map_err(StoreError::Randomness)?;
        let jitter = f64::from(random) / f64::from(u32::MAX);
        tokio::time::sleep(self.pause.mul_f64(0.5 + jitter)).await;
        self.pause = (self.pause * 2).min(LONGEST);
        Ok(())
    }
}
