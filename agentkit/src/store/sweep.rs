//! What goes on without anyone asking for it: calls whose time is over, and runs that can go on.

use sea_orm::{
    ColumnTrait as _, Condition, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _,
};

use super::{
    RunStatus, Store, StoreError,
    entity::{calls, runs},
};
use crate::call::{CallId, CallState, RunId};

impl Store {
    /// Calls that wait for people although their time is over, the oldest first.
    pub(crate) async fn overdue(&self, most: u64) -> Result<Vec<CallId>, StoreError> {
        let now = self.now().await?;
        let waiting = [CallState::AwaitingApproval, CallState::AwaitingInput];
        let found = calls::Entity::find()
            .filter(calls::Column::State.is_in(waiting.map(CallState::as_str)))
            .filter(calls::Column::ExpiresAt.lte(now.as_micros()))
            .order_by_asc(calls::Column::ExpiresAt)
            .limit(most)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read calls"))?;
        found
            .iter()
            .map(|row| {
                row.id
                    .parse()
                    .map_err(|error| StoreError::corrupt("id", &row.id, error))
            })
            .collect()
    }

    /// Runs of an agent that can go on and that nobody works on: decided about since they were
    /// put down, or left by an instance that died.
    pub(crate) async fn can_go_on(&self, agent: &str, most: u64) -> Result<Vec<RunId>, StoreError> {
        let now = self.now().await?;
        let woken = Condition::all()
            .add(runs::Column::Status.eq(RunStatus::Suspended.as_str()))
            .add(runs::Column::WakeAt.is_not_null());
        let left = Condition::all()
            .add(runs::Column::Status.eq(RunStatus::Running.as_str()))
            .add(runs::Column::LeaseUntil.lt(now.as_micros()));
        let found = runs::Entity::find()
            .filter(runs::Column::Agent.eq(agent))
            .filter(runs::Column::ParentId.is_null())
            .filter(Condition::any().add(woken).add(left))
            .order_by_asc(runs::Column::Id)
            .limit(most)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read runs"))?;
        found
            .iter()
            .map(|row| {
                row.id
                    .parse()
                    .map_err(|error| StoreError::corrupt("id", &row.id, error))
            })
            .collect()
    }
}
