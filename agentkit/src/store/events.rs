//! What a run's listeners are shown, kept so that any process can show it.

use sea_orm::{
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, Set, sea_query::OnConflict,
};

use super::{
    Lease, Store, StoreError,
    attempt::{Attempt, attempt},
    backend::CommitOutcome,
    entity::events,
    transaction::{RunTransaction, Writing},
};
use crate::call::RunId;

/// An event of a run, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEvent {
    pub(crate) sequence: i64,
    /// JSON.
    pub(crate) body: String,
}

impl Store {
    /// Writes events of a run, as the holder of its lease. Those that are written already stay as
    /// they are.
    pub(crate) async fn append_events(
        &self,
        lease: &Lease,
        events: &[StoredEvent],
    ) -> Result<(), StoreError> {
        attempt!(self, |attempt| attempt.try_append_events(lease, events))
    }

    /// Events of a run after a sequence number, in order.
    pub(crate) async fn events(
        &self,
        run: &RunId,
        after: i64,
        most: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let found = events::Entity::find()
            .filter(events::Column::RunId.eq(run.as_str()))
            .filter(events::Column::Sequence.gt(after))
            .order_by_asc(events::Column::Sequence)
            .limit(most)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read events"))?;
        let stored = |row: events::Model| StoredEvent {
            sequence: row.sequence,
            body: row.body,
        };
        Ok(found.into_iter().map(stored).collect())
    }

    /// Deletes the events of a run, as where the run is over and nobody attaches to it any more.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn forget_events(&self, run: &RunId) -> Result<u64, StoreError> {
        attempt!(self, |attempt| attempt.try_forget_events(run))
    }
}

impl Attempt {
    async fn try_append_events(
        &self,
        lease: &Lease,
        events: &[StoredEvent],
    ) -> Result<(), StoreError> {
        let transaction = RunTransaction::begin_held(self, lease).await?;
        insert_events(transaction.tx(), &lease.run, events).await?;
        transaction.commit().await
    }

    async fn try_forget_events(&self, run: &RunId) -> Result<u64, StoreError> {
        let writing = Writing::begin(self).await?;
        let deleted = delete_events(&writing.tx, run).await?;
        match writing.commit().await? {
            CommitOutcome::Committed => Ok(deleted),
            // Deleting again does no harm.
            CommitOutcome::Unknown => Err(StoreError::Busy),
        }
    }
}

/// How many rows go into one statement: databases bound the number of parameters.
const CHUNK: usize = 1000;

pub(super) async fn delete_events(
    tx: &impl ConnectionTrait,
    run: &RunId,
) -> Result<u64, StoreError> {
    events::Entity::delete_many()
        .filter(events::Column::RunId.eq(run.as_str()))
        .exec(tx)
        .await
        .map(|deleted| deleted.rows_affected)
        .map_err(StoreError::while_trying("delete events"))
}

pub(super) async fn insert_events(
    tx: &impl ConnectionTrait,
    run: &RunId,
    events: &[StoredEvent],
) -> Result<(), StoreError> {
    for chunk in events.chunks(CHUNK) {
        let rows = chunk.iter().map(|event| events::ActiveModel {
            run_id: Set(run.to_string()),
            sequence: Set(event.sequence),
            body: Set(event.body.clone()),
        });
        let known = OnConflict::columns([events::Column::RunId, events::Column::Sequence])
            .do_nothing_on([events::Column::RunId, events::Column::Sequence])
            .to_owned();
        events::Entity::insert_many(rows)
            .on_conflict(known)
            .exec_without_returning(tx)
            .await
            .map_err(StoreError::while_trying("write events"))?;
    }
    Ok(())
}
