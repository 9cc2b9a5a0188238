//! Delegations: the run at the top, and the runs that its calls were handed to.

use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, Set};

use super::{
    RunRecord, Store, StoreError,
    attempt::{Attempt, attempt},
    entity::{calls, runs},
    rows,
    transaction::RunTransaction,
};
use crate::{
    call::{CallId, RunId},
    journal::Event,
};

impl Store {
    /// The run that a call was handed to, if it was started.
    pub(crate) async fn child_of(&self, call: &CallId) -> Result<Option<RunRecord>, StoreError> {
        runs::Entity::find()
            .filter(runs::Column::ParentCall.eq(call.as_str()))
            .one(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read a run"))?
            .as_ref()
            .map(rows::run)
            .transpose()
    }

    /// The run of a call; none where there is no such call.
    pub(crate) async fn run_of(&self, call: &CallId) -> Result<Option<RunRecord>, StoreError> {
        let found = calls::Entity::find_by_id(call.as_str())
            .one(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read a call"))?;
        let Some(found) = found else { return Ok(None) };
        let run: RunId = found
            .run_id
            .parse()
            .map_err(|error| StoreError::corrupt("run id", call.as_str(), error))?;
        self.run(&run).await.map(Some)
    }

    /// The runs below a root, in the order in which they were started.
    ///
    /// # Errors
    ///
    /// When the database fails or a row does not hold what this library writes.
    pub async fn delegated(&self, root: &RunId) -> Result<Vec<RunRecord>, StoreError> {
        self.delegated_by([root.as_str()]).await
    }

    /// The runs below some roots.
    pub(super) async fn delegated_by(
        &self,
        roots: impl IntoIterator<Item = &str> + Send,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let found = runs::Entity::find()
            .filter(runs::Column::RootId.is_in(roots))
            .filter(runs::Column::ParentId.is_not_null())
            .order_by_asc(runs::Column::Id)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read runs"))?;
        found.iter().map(rows::run).collect()
    }

    /// Tokens that all runs of a delegation have used.
    pub(crate) async fn tokens(&self, root: &RunId) -> Result<u64, StoreError> {
        let below = self.delegated(root).await?;
        let own = self.run(root).await?;
        Ok(below
            .iter()
            .fold(own.tokens, |sum, run| sum.saturating_add(run.tokens)))
    }

    /// Whether a run is to be cancelled.
    pub(crate) async fn is_cancelled(&self, run: &RunId) -> Result<bool, StoreError> {
        runs::Entity::find_by_id(run.as_str())
            .filter(runs::Column::CancelledAt.is_not_null())
            .one(&self.inner.reader)
            .await
            .map(|found| found.is_some())
            .map_err(StoreError::while_trying("read a run"))
    }

    /// Marks a run and all runs below it as to be cancelled. Nothing of it where the run is over
    /// or marked already.
    pub(crate) async fn request_cancel(
        &self,
        root: &RunId,
        event: &Event,
    ) -> Result<RunRecord, StoreError> {
        attempt!(self, |attempt| attempt.try_request_cancel(root, event))
    }
}

impl Attempt {
    async fn try_request_cancel(
        &self,
        root: &RunId,
        event: &Event,
    ) -> Result<RunRecord, StoreError> {
        let mut transaction = RunTransaction::begin(self, root).await?;
        let mut record = rows::run(&transaction.row)?;
        if record.status.is_final() || record.cancelled.is_some() {
            return Ok(record);
        }
        let now = transaction.now;
        record.cancelled = Some(now);
        transaction.changes.cancelled_at = Set(Some(now.as_micros()));
        transaction.append(event)?;
        runs::Entity::update_many()
            .set(runs::ActiveModel {
                cancelled_at: Set(Some(now.as_micros())),
                ..Default::default()
            })
            .filter(runs::Column::RootId.eq(root.as_str()))
            .filter(runs::Column::ParentId.is_not_null())
            .exec(transaction.tx())
            .await
            .map_err(StoreError::while_trying("mark runs as cancelled"))?;
        transaction.commit().await?;
        Ok(record)
    }
}
