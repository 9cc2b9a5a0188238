use sea_orm::{
    ColumnTrait as _, DatabaseTransaction, EntityTrait as _, QueryFilter as _, QuerySelect as _,
    Set,
};

use super::{
    Lease, RunStatus, Store, StoreError,
    attempt::{Attempt, attempt},
    backend,
    backend::{CommitOutcome, Trouble},
    connect,
    entity::{journal, runs},
    group::Seat,
    handle::Handle,
    rows,
    run::{Usage, insert_message},
};
use crate::{
    call::{Canonical, RunId, Timestamp},
    journal::{ChainHead, Entry, Event},
};

/// A transaction that may write: one of its own, or a savepoint in one that is shared. Dropping
/// it undoes what it did.
pub(super) struct Writing {
    // Dropped before the seat is given up, so that its undoing comes before what others do.
    pub(super) tx: Handle<DatabaseTransaction>,
    seat: Option<Seat>,
}

impl Writing {
    pub(super) async fn begin(attempt: &Attempt) -> Result<Self, StoreError> {
        let writer = &attempt.inner.writer;
        let prefix = writer.prefix().cloned();
        match &attempt.inner.group {
            Some(group) => {
                let (tx, mut seat) = group.join(writer.inner(), attempt.seen.clone()).await?;
                let tx = Handle::new(tx, prefix);
                seat.watch(&tx);
                Ok(Self {
                    tx,
                    seat: Some(seat),
                })
            }
            None => Ok(Self {
                tx: Handle::new(connect::begin(writer.inner()).await?, prefix),
                seat: None,
            }),
        }
    }

    pub(super) async fn commit(self) -> Result<CommitOutcome, StoreError> {
        let Self { tx, seat } = self;
        if tx.failed() {
            // A statement failed, and whoever asked for it went on all the same.
            return Err(StoreError::Busy);
        }
        let tx = tx.into_inner();
        match seat {
            Some(seat) => seat.commit(tx).await,
            None => match tx.commit().await {
                Ok(()) => Ok(CommitOutcome::Committed),
                Err(error) if backend::trouble(&error) == Trouble::ConnectionLost => {
                    Ok(CommitOutcome::Unknown)
                }
                Err(source) => Err(StoreError::Database {
                    doing: "commit",
                    source,
                }),
            },
        }
    }
}

/// A transaction on one run: holds the run's row, appends to its journal, and writes both at the
/// end. Dropping it undoes everything.
pub(super) struct RunTransaction {
    writing: Writing,
    attempt: Attempt,
    /// The database's clock at the start, and later than everything that was written before.
    pub(super) now: Timestamp,
    pub(super) row: runs::Model,
    /// What else changes in the run's row.
    pub(super) changes: runs::ActiveModel,
    id: RunId,
    head: ChainHead,
    entries: Vec<(&'static str, Entry)>,
}

impl RunTransaction {
    /// Begins a transaction that locks the run's row.
    pub(super) async fn begin(attempt: &Attempt, run: &RunId) -> Result<Self, StoreError> {
        let writing = Writing::begin(attempt).await?;
        let row = runs::Entity::find_by_id(run.as_str())
            .lock_exclusive()
            .one(&writing.tx)
            .await
            .map_err(StoreError::while_trying("read a run"))?
            .ok_or_else(|| StoreError::UnknownRun {
                run: run.to_string(),
            })?;
        // Read after the lock was taken, so that it is not earlier than what others wrote; and
        // different in every change of a run, so that a change can be recognised.
        let now = backend::now(&writing.tx).await?;
        let now = now.max(Timestamp::from_micros(row.updated_at.saturating_add(1)));
        let head = rows::head(&row)?;
        Ok(Self {
            head,
            ..Self::for_new(attempt, writing, now, row, run.clone())
        })
    }

    /// Begins a transaction for the holder of a lease.
    pub(super) async fn begin_held(attempt: &Attempt, lease: &Lease) -> Result<Self, StoreError> {
        let transaction = Self::begin(attempt, &lease.run).await?;
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
        attempt: &Attempt,
        writing: Writing,
        now: Timestamp,
        row: runs::Model,
        id: RunId,
    ) -> Self {
        let changes = runs::ActiveModel {
            id: Set(row.id.clone()),
            ..Default::default()
        };
        Self {
            writing,
            attempt: attempt.clone(),
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
            .exec(self.tx())
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
        insert_message(self.tx(), run, sequence, step, message, self.now).await?;
        self.row.messages = sequence.saturating_add(1);
        self.changes.messages = Set(self.row.messages);
        Ok(())
    }

    /// Writes how the run stands and gives the lease back.
    pub(super) fn put_down(&mut self, status: RunStatus) {
        self.account();
        self.changes.status = Set(status.as_str().to_owned());
        self.changes.lease_owner = Set(None);
        self.changes.lease_until = Set(0);
    }

    /// Counts what an answer of the model used.
    pub(super) fn use_tokens(&mut self, usage: Usage) {
        let add =
            |before: i64, more: u64| before.saturating_add(i64::try_from(more).unwrap_or(i64::MAX));
        self.changes.input_tokens = Set(add(self.row.input_tokens, usage.input));
        self.changes.output_tokens = Set(add(self.row.output_tokens, usage.output));
    }

    /// Where the statements of this transaction go.
    pub(super) const fn tx(&self) -> &Handle<DatabaseTransaction> {
        &self.writing.tx
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
                .exec_without_returning(self.tx())
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
            .exec(&self.writing.tx)
            .await
            .map_err(StoreError::while_trying("write a run"))?;
        if changed.rows_affected != 1 {
            return Err(StoreError::LeaseLost { run: self.row.id });
        }
        match self.writing.commit().await? {
            CommitOutcome::Committed => Ok(()),
            CommitOutcome::Unknown => {
                let (now, last) = (self.now, self.entries.last());
                if was_written(
                    &self.attempt,
                    &self.row.id,
                    now,
                    last.map(|(_, entry)| entry),
                )
                .await?
                {
                    Ok(())
                } else {
                    Err(StoreError::Busy)
                }
            }
        }
    }
}

/// Whether a change of a run is there whose commit was not answered. Waits for the database to
/// end the transaction, and does not guess.
async fn was_written(
    store: &Store,
    run: &str,
    at: Timestamp,
    last: Option<&Entry>,
) -> Result<bool, StoreError> {
    let found: Result<_, StoreError> =
        async { attempt!(store, |attempt| look(&attempt, run, at, last)) }.await;
    found.ok().flatten().ok_or_else(|| StoreError::Unknown {
        run: run.to_owned(),
    })
}

async fn look(
    attempt: &Attempt,
    run: &str,
    at: Timestamp,
    last: Option<&Entry>,
) -> Result<Option<bool>, StoreError> {
    let writing = Writing::begin(attempt).await?;
    // The lock is given when the transaction whose end is not known has ended.
    let row = runs::Entity::find_by_id(run)
        .lock_exclusive()
        .one(&writing.tx)
        .await
        .map_err(StoreError::while_trying("read a run"))?;
    let Some(row) = row else {
        return Ok(Some(false));
    };
    match row.updated_at.cmp(&at.as_micros()) {
        std::cmp::Ordering::Less => Ok(Some(false)),
        std::cmp::Ordering::Equal => Ok(Some(true)),
        // Someone changed the run since: only the journal can tell.
        std::cmp::Ordering::Greater => match last {
            None => Ok(None),
            Some(entry) => {
                let found = journal::Entity::find_by_id((run.to_owned(), entry.sequence))
                    .one(&writing.tx)
                    .await
                    .map_err(StoreError::while_trying("read the journal"))?;
                Ok(Some(found.is_some_and(|found| {
                    found.digest == entry.digest.as_bytes().as_slice()
                })))
            }
        },
    }
}
