use std::time::Duration;

use sea_orm::{
    ColumnTrait as _, DatabaseTransaction, DbErr, EntityTrait as _, QueryFilter as _,
    QuerySelect as _, Set, SqliteTransactionMode, TransactionOptions, TransactionTrait as _,
};

use super::{
    Lease, Store, StoreError, connect,
    entity::{journal, runs},
    rows,
    run::{Usage, insert_message},
};
use crate::{
    call::{Canonical, RunId, Timestamp},
    journal::{ChainHead, Entry, Event},
};

/// A transaction on one run: holds the run's row, appends to its journal, and writes both at the
/// end. Dropping it undoes everything.
pub(super) struct RunTransaction {
    pub(super) tx: DatabaseTransaction,
    /// The database's clock at the start.
    pub(super) now: Timestamp,
    pub(super) row: runs::Model,
    /// What else changes in the run's row.
    pub(super) changes: runs::ActiveModel,
    id: RunId,
    head: ChainHead,
    entries: Vec<(&'static str, Entry)>,
}

/// Begins a transaction that may write, trying again while another process writes.
pub(super) async fn begin(store: &Store) -> Result<DatabaseTransaction, StoreError> {
    let mut pause = Duration::from_millis(2);
    let mut attempts = 0;
    loop {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        match store.inner.writer.begin_with_options(options).await {
            Ok(tx) => return Ok(tx),
            Err(error) if attempts < 8 && is_busy(&error) => {
                attempts += 1;
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            Err(source) => {
                return Err(StoreError::Database {
                    doing: "begin a transaction",
                    source,
                });
            }
        }
    }
}

fn is_busy(error: &DbErr) -> bool {
    let text = error.to_string();
    text.contains("database is locked") || text.contains("database is busy")
}

impl RunTransaction {
    /// Begins a transaction that locks the run's row.
    pub(super) async fn begin(store: &Store, run: &RunId) -> Result<Self, StoreError> {
        let tx = begin(store).await?;
        let row = runs::Entity::find_by_id(run.as_str())
            .lock_exclusive()
            .one(&tx)
            .await
            .map_err(StoreError::while_trying("read a run"))?
            .ok_or_else(|| StoreError::UnknownRun {
                run: run.to_string(),
            })?;
        // Read after the lock was taken, so that it is not earlier than what others wrote.
        let now = connect::now(&tx).await?;
        let head = rows::head(&row)?;
        let changes = runs::ActiveModel {
            id: Set(row.id.clone()),
            ..Default::default()
        };
        Ok(Self {
            tx,
            now,
            row,
            changes,
            id: run.clone(),
            head,
            entries: Vec::new(),
        })
    }

    /// Begins a transaction for the holder of a lease.
    pub(super) async fn begin_held(store: &Store, lease: &Lease) -> Result<Self, StoreError> {
        let transaction = Self::begin(store, &lease.run).await?;
        let row = &transaction.row;
        if row.lease_epoch == lease.epoch && row.lease_owner.as_ref() == Some(&lease.owner) {
            Ok(transaction)
        } else {
            Err(StoreError::LeaseLost {
                run: lease.run.to_string(),
            })
        }
    }

    /// Continues a transaction that has just inserted the run.
    pub(super) fn for_new(
        tx: DatabaseTransaction,
        now: Timestamp,
        row: runs::Model,
        id: RunId,
    ) -> Self {
        let changes = runs::ActiveModel {
            id: Set(row.id.clone()),
            ..Default::default()
        };
        Self {
            tx,
            now,
            row,
            changes,
            id,
            head: ChainHead::EMPTY,
            entries: Vec::new(),
        }
    }

    /// Counts the time since the run was picked up, or was counted last, as worked.
    pub(super) fn account(&mut self) {
        let now = self.now.as_micros();
        let since = now.saturating_sub(self.row.worked_since).max(0);
        self.changes.worked = Set(self.row.worked.saturating_add(since));
        self.changes.worked_since = Set(now);
    }

    /// Marks the root of the run as one that can go on, for a worker to take it up.
    pub(super) async fn wake(&mut self) -> Result<(), StoreError> {
        let now = Some(self.now.as_micros());
        if self.row.parent_id.is_none() {
            self.changes.wake_at = Set(now);
            return Ok(());
        }
        runs::Entity::update_many()
            .set(runs::ActiveModel {
                wake_at: Set(now),
                ..Default::default()
            })
            .filter(runs::Column::Id.eq(self.row.root_id.as_str()))
            .exec(&self.tx)
            .await
            .map(|_| ())
            .map_err(StoreError::while_trying("write a run"))
    }

    /// Adds a message to the run.
    pub(super) async fn say(
        &mut self,
        run: &RunId,
        step: i32,
        message: String,
    ) -> Result<(), StoreError> {
        let sequence = self.row.messages;
        insert_message(&self.tx, run, sequence, step, message, self.now).await?;
        self.row.messages = sequence.saturating_add(1);
        self.changes.messages = Set(self.row.messages);
        Ok(())
    }

    /// Counts what an answer of the model used.
    pub(super) fn use_tokens(&mut self, usage: Usage) {
        let add =
            |before: i64, more: u64| before.saturating_add(i64::try_from(more).unwrap_or(i64::MAX));
        self.changes.input_tokens = Set(add(self.row.input_tokens, usage.input));
        self.changes.output_tokens = Set(add(self.row.output_tokens, usage.output));
    }

    /// Appends an event to the run's journal.
    pub(super) fn append(&mut self, event: &Event) -> Result<(), StoreError> {
        let body = Canonical::of(event)
            .map_err(|error| StoreError::corrupt("event", self.id.as_str(), error))?;
        let entry = self.head.next(&self.id, self.now, body);
        self.head = entry.head();
        self.entries.push((event.name(), entry));
        Ok(())
    }

    /// Writes the journal and the run's row, and commits.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        let rows = self
            .entries
            .iter()
            .map(|(event, entry)| journal::ActiveModel {
                run_id: Set(self.row.id.clone()),
                sequence: Set(entry.sequence),
                event: Set((*event).to_owned()),
                body: Set(entry.body.to_string()),
                previous: Set(entry.previous.map(|digest| digest.as_bytes().to_vec())),
                digest: Set(entry.digest.as_bytes().to_vec()),
                created_at: Set(entry.at.as_micros()),
            });
        if !self.entries.is_empty() {
            journal::Entity::insert_many(rows.collect::<Vec<_>>())
                .exec_without_returning(&self.tx)
                .await
                .map_err(StoreError::while_trying("write the journal"))?;
        }
        self.changes.journal_sequence = Set(self.head.sequence);
        self.changes.journal_head = Set(self.head.digest.map(|digest| digest.as_bytes().to_vec()));
        self.changes.updated_at = Set(self.now.as_micros());
        let changed = runs::Entity::update_many()
            .set(self.changes)
            .filter(runs::Column::Id.eq(self.row.id.as_str()))
            .filter(runs::Column::JournalSequence.eq(self.row.journal_sequence))
            .exec(&self.tx)
            .await
            .map_err(StoreError::while_trying("write a run"))?;
        if changed.rows_affected != 1 {
            return Err(StoreError::LeaseLost { run: self.row.id });
        }
        self.tx
            .commit()
            .await
            .map_err(StoreError::while_trying("commit"))
    }
}
