//! Group commit: transactions that run one after another share one commit.
//!
//! SQLite has one writer, and what a commit costs is the wait for the disk. Whoever comes first
//! opens a transaction and sees to it that it is committed; whoever comes while it is open works
//! in a savepoint of it. Nobody is told of anything before the commit: neither of his own success
//! nor of what he saw of the others'.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sea_orm::{DatabaseTransaction, TransactionTrait as _};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use super::{StoreError, attempt::Seen, backend::CommitOutcome, connect, handle::Handle};

/// The transaction that is open now, if any. The mutex is fair: whoever asked for a seat before
/// the committer did shares its commit.
#[derive(Clone, Debug, Default)]
pub(super) struct Group(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    transaction: Option<DatabaseTransaction>,
    waiting: Vec<oneshot::Sender<Shared>>,
    /// Something happened after which it is not known what the open transaction holds: it is
    /// undone, and everyone in it tries again.
    spoiled: bool,
}

/// What became of the transaction that several share.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shared {
    Committed,
    /// Nothing of it is there.
    Undone,
    /// The commit failed, and what is there has to be read.
    Unknown,
}

impl Open {
    /// Undoes the open transaction: whoever waits for it tries again.
    fn abandon(&mut self) {
        self.transaction = None;
        self.spoiled = false;
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Shared::Undone);
        }
    }
}

/// The right to write in the open transaction, in a savepoint.
#[derive(Debug)]
pub(super) struct Seat {
    open: OwnedMutexGuard<Open>,
    /// Whether a statement in the savepoint failed: SQLite may have undone more than that.
    failed: Option<Arc<AtomicBool>>,
    /// Who has to know what becomes of the rows that were seen here.
    seen: Seen,
    /// Whether what was done here is part of the commit, and the answer waits for it anyway.
    committed: bool,
}

impl Group {
    /// Takes a seat, and opens a transaction where none is open.
    pub(super) async fn join(
        &self,
        writer: &sea_orm::DatabaseConnection,
        seen: Seen,
    ) -> Result<(DatabaseTransaction, Seat), StoreError> {
        let mut open = Arc::clone(&self.0).lock_owned().await;
        if open.spoiled {
            open.abandon();
        }
        if open.transaction.is_none() {
            open.transaction = Some(connect::begin(writer).await?);
            tokio::spawn(self.clone().commit());
        }
        let mut seat = Seat {
            open,
            failed: None,
            seen,
            committed: false,
        };
        let Open {
            transaction,
            spoiled,
            ..
        } = &mut *seat.open;
        let Some(transaction) = transaction else {
            return Err(StoreError::Busy);
        };
        // Were this dropped half-way, it would not be known whether there is a savepoint.
        *spoiled = true;
        let savepoint = transaction
            .begin()
            .await
            .map_err(StoreError::while_trying("begin a transaction"))?;
        *spoiled = false;
        Ok((savepoint, seat))
    }

    /// Commits what is open, after everyone who asked for a seat before.
    async fn commit(self) {
        let mut open = self.0.lock().await;
        if open.spoiled {
            open.abandon();
            return;
        }
        let Some(transaction) = open.transaction.take() else {
            return;
        };
        if open.waiting.is_empty() {
            // Nobody wrote anything.
            drop(transaction);
            return;
        }
        let committed = match transaction.commit().await {
            Ok(()) => Shared::Committed,
            Err(error) => {
                tracing::warn!(%error, "committing");
                Shared::Unknown
            }
        };
        for waiting in open.waiting.drain(..) {
            let _ = waiting.send(committed);
        }
    }
}

impl Seat {
    /// Ends the savepoint and waits for the commit.
    pub(super) async fn commit(
        mut self,
        savepoint: DatabaseTransaction,
    ) -> Result<CommitOutcome, StoreError> {
        self.open.spoiled = true;
        savepoint
            .commit()
            .await
            .map_err(StoreError::while_trying("commit"))?;
        self.open.spoiled = false;
        let (sender, committed) = oneshot::channel();
        self.open.waiting.push(sender);
        self.committed = true;
        drop(self);
        match committed.await {
            Ok(Shared::Committed) => Ok(CommitOutcome::Committed),
            Ok(Shared::Undone) => Err(StoreError::Busy),
            Ok(Shared::Unknown) | Err(_) => Ok(CommitOutcome::Unknown),
        }
    }

    /// Learns from `tx` whether a statement fails.
    pub(super) fn watch(&mut self, tx: &Handle<DatabaseTransaction>) {
        self.failed = Some(tx.failure());
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let failed = |failed: &Arc<AtomicBool>| failed.load(Ordering::Relaxed);
        if self.failed.as_ref().is_some_and(failed) {
            self.open.spoiled = true;
        }
        if !self.committed && !self.open.waiting.is_empty() {
            let (sender, commit) = oneshot::channel();
            self.open.waiting.push(sender);
            self.seen.add(commit);
        }
    }
}
