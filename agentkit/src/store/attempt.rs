//! A change is tried as a whole until it is written, and no answer leaves before what it rests on
//! is durable.
//!
//! Transactions that share a commit see each other's rows before it: "this was approved already"
//! or "this run is over" may be read off a row that is not written yet, and would be untrue if the
//! machine stopped now. So whoever writes nothing himself waits for the commit of what he saw, and
//! tries again where it was undone.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::oneshot;

use super::{Store, StoreError, group::Shared};

/// One attempt at a change: the only way to a transaction that may write.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    store: Store,
    pub(super) seen: Seen,
}

impl Deref for Attempt {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// The commits that an attempt has to wait for, since it saw what they are to write.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<oneshot::Receiver<Shared>>>>);

impl Seen {
    pub(super) fn add(&self, commit: oneshot::Receiver<Shared>) {
        let mut commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        commits.push(commit);
    }

    /// Waits until all of it is written.
    ///
    /// # Errors
    ///
    /// When it is not, or nobody knows: what was seen has to be looked at again.
    async fn written(&self) -> Result<(), StoreError> {
        let commits = {
            let mut commits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *commits)
        };
        for commit in commits {
            match commit.await {
                Ok(Shared::Committed) => {}
                Ok(Shared::Undone | Shared::Unknown) | Err(_) => return Err(StoreError::Busy),
            }
        }
        Ok(())
    }
}

impl Attempt {
    pub(super) fn at(store: &Store) -> Self {
        Self {
            store: store.clone(),
            seen: Seen::default(),
        }
    }

    /// What the attempt came to, once all that it saw is written.
    pub(super) async fn settled<T>(self, came_to: Result<T, StoreError>) -> Result<T, StoreError> {
        self.seen.written().await.and(came_to)
    }
}

/// Tries a change until it is written or fails for good. An attempt that wrote nothing is answered
/// once what it saw is written.
///
/// A macro, since the future of an asynchronous closure is not seen to be `Send`.
macro_rules! attempt {
    ($store:expr, |$attempt:ident| $tried:expr) => {{
        let mut retry = $crate::store::backend::Retry::new();
        loop {
            let $attempt = $crate::store::attempt::Attempt::at($store);
            let came_to = $tried.await;
            match $attempt.settled(came_to).await {
                Err(error) => retry.after(error).await?,
                done => break done,
            }
        }
    }};
}
pub(super) use attempt;

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use sea_orm::ConnectionTrait as _;

    use super::*;
    use crate::store::transaction::Writing;

    /// The file of a database, removed at the end.
    struct File(std::path::PathBuf);

    impl Drop for File {
        fn drop(&mut self) {
            for end in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
            }
        }
    }

    /// A database with one row that says 0.
    async fn database() -> (File, Store) {
        let name = format!("attempt-{}.db", crate::call::RunId::new());
        let file = File(std::env::temp_dir().join(name));
        let url = format!("sqlite://{}?mode=rwc", file.0.display());
        let store = Store::open(&url).await.unwrap();
        let writer = &store.inner.writer;
        writer
            .execute_unprepared("CREATE TABLE told (value INTEGER NOT NULL)")
            .await
            .unwrap();
        writer
            .execute_unprepared("INSERT INTO told VALUES (0)")
            .await
            .unwrap();
        (file, store)
    }

    async fn value(at: &impl sea_orm::ConnectionTrait) -> i64 {
        let row = at
            .query_one_raw(sea_orm::Statement::from_string(
                sea_orm::DbBackend::Sqlite,
                "SELECT value FROM told",
            ))
            .await
            .unwrap();
        row.unwrap().try_get("", "value").unwrap()
    }

    async fn writes(store: &Store, new: i64) -> Result<(), StoreError> {
        let attempt = Attempt::at(store);
        let writing = Writing::begin(&attempt).await?;
        let sql = format!("UPDATE told SET value = {new}");
        writing.tx.execute_unprepared(&sql).await.unwrap();
        writing.commit().await.map(|_| ())
    }

    async fn reads(store: &Store) -> Result<i64, StoreError> {
        let attempt = Attempt::at(store);
        let writing = Writing::begin(&attempt).await?;
        let seen = value(&writing.tx).await;
        drop(writing);
        attempt.settled(Ok(seen)).await
    }

    #[tokio::test]
    async fn what_an_answer_rests_on_is_written_before_it() {
        let (_file, store) = database().await;
        for round in 1..=20 {
            // Whoever comes while the first one begins shares its transaction.
            let answered = async {
                let seen = reads(&store).await.unwrap();
                (seen, value(&store.inner.reader).await)
            };
            let (written, answered) = tokio::join!(writes(&store, round), answered);
            written.unwrap();
            assert_eq!(answered, (round, round));
        }
    }

    #[tokio::test]
    async fn what_was_undone_is_not_answered() {
        let (_file, store) = database().await;
        let fails = async {
            let attempt = Attempt::at(&store);
            let writing = Writing::begin(&attempt).await.unwrap();
            let failed = writing.tx.execute_unprepared("INSERT INTO nowhere").await;
            assert!(failed.is_err());
        };
        let (written, answered, ()) = tokio::join!(writes(&store, 7), reads(&store), fails);
        assert!(matches!(written, Err(StoreError::Busy)), "{written:?}");
        assert!(matches!(answered, Err(StoreError::Busy)), "{answered:?}");
        assert_eq!(reads(&store).await.unwrap(), 0);
    }
}
