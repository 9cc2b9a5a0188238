//! Calls with everything about them that a person may be shown: what the server lists and reads.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait as _, EntityTrait as _, JoinType, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, Select,
    sea_query::{Expr, ExprTrait as _},
};

use super::{
    CallRecord, RunRecord, Store, StoreError, StoredDecision,
    entity::{calls, decisions, runs},
    inbox::pending_call,
    rows,
};
use crate::{
    approval::{DecisionKind, PendingCall, Vote},
    call::{CallId, CallState, RunId},
};

/// Which waiting calls are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitingFilter {
    pub(crate) agent: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) requester: Option<String>,
    /// The tenant, which is always asked for: none means the calls of no tenant.
    pub(crate) tenant: Option<String>,
    /// What is asked of a person; empty for everything.
    pub(crate) states: Vec<CallState>,
}

/// A call with its run and everything that was decided about it.
#[derive(Clone, Debug)]
pub(crate) struct CallInSight {
    pub(crate) run: RunRecord,
    pub(crate) call: CallRecord,
    pub(crate) decisions: Vec<StoredDecision>,
}

impl CallInSight {
    /// What a person is shown of it while it waits for one.
    pub(crate) fn pending(&self) -> Option<PendingCall> {
        pending_call(&self.run, self.call.clone(), self.decisions.iter())
    }

    /// The approvals of the present occasion.
    pub(crate) fn votes(&self) -> impl Iterator<Item = Vote> {
        self.decisions
            .iter()
            .filter(|stored| Some(stored.nonce) == self.call.nonce)
            .filter(|stored| stored.decision.kind == DecisionKind::Approve)
            .map(|stored| Vote::new(stored.approver.clone(), stored.decision.at))
    }
}

/// Tells that the set of waiting calls has changed, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watermark {
    count: i64,
    latest: Option<i64>,
}

impl Watermark {
    /// How many calls wait.
    pub(crate) const fn count(self) -> i64 {
        self.count
    }
}

impl Store {
    /// Whether `self` and `other` are the same open database.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Waiting calls of one tenant after a call, in the order in which they were proposed.
    pub(crate) async fn waiting(
        &self,
        filter: &WaitingFilter,
        after: Option<&CallId>,
        size: u64,
    ) -> Result<Vec<CallInSight>, StoreError> {
        let mut query = with_runs().order_by_asc(calls::Column::Id).limit(size);
        query = query.filter(waiting_states(&filter.states));
        query = match &filter.tenant {
            Some(tenant) => query.filter(runs::Column::Tenant.eq(tenant.as_str())),
            None => query.filter(runs::Column::Tenant.is_null()),
        };
        if let Some(agent) = &filter.agent {
            query = query.filter(runs::Column::Agent.eq(agent.as_str()));
        }
        if let Some(tool) = &filter.tool {
            query = query.filter(calls::Column::Tool.eq(tool.as_str()));
        }
        if let Some(requester) = &filter.requester {
            query = query.filter(runs::Column::RequesterId.eq(requester.as_str()));
        }
        if let Some(after) = after {
            query = query.filter(calls::Column::Id.gt(after.as_str()));
        }
        self.in_sight(query).await
    }

    /// All waiting calls of all tenants, up to `size`: what the live list is made from.
    pub(crate) async fn all_waiting(&self, size: u64) -> Result<Vec<CallInSight>, StoreError> {
        let query = with_runs()
            .filter(waiting_states(&[]))
            .order_by_asc(calls::Column::Id)
            .limit(size);
        self.in_sight(query).await
    }

    /// How the set of waiting calls stands.
    pub(crate) async fn watermark(&self) -> Result<Watermark, StoreError> {
        let found = calls::Entity::find()
            .select_only()
            .column_as(calls::Column::Id.count(), "count")
            .column_as(calls::Column::UpdatedAt.max(), "latest")
            .filter(waiting_states(&[]))
            .into_tuple::<(i64, Option<i64>)>()
            .one(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("count pending calls"))?;
        let (count, latest) = found.unwrap_or((0, None));
        Ok(Watermark { count, latest })
    }

    /// One call, whatever its state.
    pub(crate) async fn call_in_sight(
        &self,
        run: &RunId,
        call: &CallId,
    ) -> Result<Option<CallInSight>, StoreError> {
        let query = with_runs()
            .filter(calls::Column::Id.eq(call.as_str()))
            .filter(calls::Column::RunId.eq(run.as_str()));
        Ok(self.in_sight(query).await?.pop())
    }

    /// All calls of a run, and of those below a root, in the order in which they were proposed.
    pub(crate) async fn calls_in_sight(&self, run: &RunId) -> Result<Vec<CallInSight>, StoreError> {
        let own = calls::Column::RunId.eq(run.as_str());
        let query = with_runs()
            .filter(own.or(runs::Column::RootId.eq(run.as_str())))
            .order_by_asc(calls::Column::Id);
        self.in_sight(query).await
    }

    /// Calls of the same agent and tool, of the same tenant, that people approved before this
    /// one; the latest first.
    pub(crate) async fn approved_before(
        &self,
        seen: &CallInSight,
        size: u64,
    ) -> Result<Vec<CallInSight>, StoreError> {
        let over = [
            CallState::Succeeded,
            CallState::Executing,
            CallState::Failed,
        ];
        let mut query = with_runs()
            .filter(calls::Column::Tool.eq(seen.call.tool.as_str()))
            .filter(calls::Column::State.is_in(over.map(CallState::as_str)))
            .filter(calls::Column::RequestedAt.is_not_null())
            .filter(calls::Column::Id.ne(seen.call.id.as_str()))
            .filter(runs::Column::Agent.eq(seen.run.agent.as_str()))
            .order_by_desc(calls::Column::RequestedAt)
            .limit(size);
        query = match &seen.run.requester.tenant {
            Some(tenant) => query.filter(runs::Column::Tenant.eq(tenant.as_str())),
            None => query.filter(runs::Column::Tenant.is_null()),
        };
        self.in_sight(query).await
    }

    async fn in_sight(&self, query: Select<calls::Entity>) -> Result<Vec<CallInSight>, StoreError> {
        let reader = &self.inner.reader;
        let found = query
            .all(reader)
            .await
            .map_err(StoreError::while_trying("list calls"))?;
        let of: Vec<_> = found.iter().map(|call| call.run_id.as_str()).collect();
        let records = runs::Entity::find()
            .filter(runs::Column::Id.is_in(of))
            .all(reader)
            .await
            .map_err(StoreError::while_trying("read runs"))?;
        let records = records
            .iter()
            .map(|row| Ok((row.id.clone(), rows::run(row)?)))
            .collect::<Result<BTreeMap<_, _>, StoreError>>()?;
        let stored = decisions::Entity::find()
            .filter(decisions::Column::CallId.is_in(found.iter().map(|call| call.id.as_str())))
            .order_by_asc(decisions::Column::DecidedAt)
            .all(reader)
            .await
            .map_err(StoreError::while_trying("read decisions"))?;
        let mut decided = BTreeMap::<_, Vec<_>>::new();
        for row in &stored {
            let (call, decision) = rows::decision_of(row)?;
            decided.entry(call).or_default().push(decision);
        }
        let mut calls = Vec::with_capacity(found.len());
        for row in &found {
            // A run that was removed between the two reads takes its calls along.
            let Some(run) = records.get(&row.run_id) else {
                continue;
            };
            calls.push(CallInSight {
                run: run.clone(),
                call: rows::call(row)?,
                decisions: decided.remove(&row.id).unwrap_or_default(),
            });
        }
        Ok(calls)
    }
}

fn with_runs() -> Select<calls::Entity> {
    let to_run = calls::Entity::belongs_to(runs::Entity)
        .from(calls::Column::RunId)
        .to(runs::Column::Id)
        .into();
    calls::Entity::find().join(JoinType::InnerJoin, to_run)
}

fn waiting_states(states: &[CallState]) -> Expr {
    let named: Vec<_> = if states.is_empty() {
        CallState::ALL
            .into_iter()
            .filter(|state| state.needs_person())
            .map(CallState::as_str)
            .collect()
    } else {
        states.iter().map(|state| state.as_str()).collect()
    };
    calls::Column::State.is_in(named)
}
