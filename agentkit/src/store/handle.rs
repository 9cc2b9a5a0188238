use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, Statement,
};

use super::backend::{Trouble, trouble};

/// The prefix under which the entities are declared.
pub(super) const DECLARED: &str = "agentkit_";

/// A connection or transaction as the entities use it: their tables are found under the prefix
/// that was configured.
#[derive(Debug)]
pub(super) struct Handle<C> {
    inner: C,
    /// `None` where tables are called as they are declared.
    prefix: Option<Arc<str>>,
    /// Whether a statement failed in a way that may have undone more than itself.
    failed: Arc<AtomicBool>,
}

impl<C: Clone> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.prefix.clone())
    }
}

impl<C> Handle<C> {
    pub(super) fn new(inner: C, prefix: Option<Arc<str>>) -> Self {
        Self {
            inner,
            prefix,
            failed: Arc::new(AtomicBool::new(false)),
        }
    }

    pub(super) const fn inner(&self) -> &C {
        &self.inner
    }

    pub(super) fn into_inner(self) -> C {
        self.inner
    }

    pub(super) fn prefix(&self) -> Option<&Arc<str>> {
        self.prefix.as_ref()
    }

    /// Tells later whether a statement failed.
    pub(super) fn failure(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.failed)
    }

    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Values never stand in the text of a statement, only names do.
    fn named(&self, mut statement: Statement) -> Statement {
        if let Some(prefix) = &self.prefix {
            for quote in ['"', '`'] {
                let declared = format!("{quote}{DECLARED}");
                statement.sql = statement
                    .sql
                    .replace(&declared, &format!("{quote}{prefix}"));
            }
        }
        statement
    }

    fn noted<T>(&self, result: Result<T, DbErr>) -> Result<T, DbErr> {
        if let Err(error) = &result
            && error.sql_err().is_none()
        {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }
}

#[async_trait::async_trait]
impl<C: ConnectionTrait + Retryable> ConnectionTrait for Handle<C> {
    fn get_database_backend(&self) -> DbBackend {
        self.inner.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.noted(self.inner.execute_raw(self.named(statement)).await)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.noted(self.inner.execute_unprepared(sql).await)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let statement = self.named(statement);
        let mut attempts = C::READS;
        loop {
            match self.inner.query_one_raw(statement.clone()).await {
                Err(error) if attempts > 1 && trouble(&error) != Trouble::Final => attempts -= 1,
                result => return self.noted(result),
            }
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let statement = self.named(statement);
        let mut attempts = C::READS;
        loop {
            match self.inner.query_all_raw(statement.clone()).await {
                Err(error) if attempts > 1 && trouble(&error) != Trouble::Final => attempts -= 1,
                result => return self.noted(result),
            }
        }
    }
}

/// Whether a read that failed by itself may be repeated by itself.
pub(super) trait Retryable {
    /// How often a read is tried.
    const READS: u32;
}

impl Retryable for DatabaseConnection {
    /// A server that was restarted leaves as many dead connections as the pool has.
    const READS: u32 = 20;
}

impl Retryable for sea_orm::DatabaseTransaction {
    /// Only whole transactions are tried again.
    const READS: u32 = 1;
}
