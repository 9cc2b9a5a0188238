use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _,
};

use super::{
    CallRecord, RunRecord, RunStatus, Store, StoreError, StoredDecision,
    entity::{calls, decisions, runs},
    rows,
};
use crate::{
    approval::{DecisionKind, PendingCall, PendingKind, Vote},
    call::{CallState, RunId},
};

/// Which runs are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunFilter {
    /// Runs of this agent only.
    pub agent: Option<String>,
    /// Runs on behalf of this principal only.
    pub requester: Option<String>,
    /// Runs of this status only.
    pub status: Option<RunStatus>,
}

impl RunFilter {
    /// Runs that wait for people.
    pub fn suspended() -> Self {
        Self {
            status: Some(RunStatus::Suspended),
            ..Self::default()
        }
    }

    /// Runs of this status only.
    pub fn status(mut self, status: RunStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Runs of this agent only.
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Runs on behalf of this principal only.
    pub fn requester(mut self, id: impl Into<String>) -> Self {
        self.requester = Some(id.into());
        self
    }
}

/// A page of a list that is ordered by id, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The last run of the page before.
    pub after: Option<RunId>,
    /// The most runs on a page, at most 1,000.
    pub size: u64,
}

impl Default for Page {
    /// The first twenty.
    fn default() -> Self {
        Self {
            after: None,
            size: 20,
        }
    }
}

/// A run in a list, with what waits in it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunSummary {
    /// The run.
    pub run: RunRecord,
    /// The calls that wait for people.
    pub pending: Vec<PendingCall>,
}

impl Store {
    /// Runs that match, with what waits in them; a page at a time, oldest first.
    ///
    /// # Errors
    ///
    /// When the database fails or a row does not hold what this library writes.
    pub async fn runs(
        &self,
        filter: &RunFilter,
        page: &Page,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let mut query = runs::Entity::find()
            .order_by_asc(runs::Column::Id)
            .limit(page.size.clamp(1, 1000));
        if let Some(agent) = &filter.agent {
            query = query.filter(runs::Column::Agent.eq(agent.as_str()));
        }
        if let Some(requester) = &filter.requester {
            query = query.filter(runs::Column::RequesterId.eq(requester.as_str()));
        }
        if let Some(status) = filter.status {
            query = query.filter(runs::Column::Status.eq(status.as_str()));
        }
        if let Some(after) = &page.after {
            query = query.filter(runs::Column::Id.gt(after.as_str()));
        }
        let found = query
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("list runs"))?;
        let records = found.iter().map(rows::run).collect::<Result<Vec<_>, _>>()?;
        let mut pending = self.pending_of(&records).await?;
        Ok(records
            .into_iter()
            .map(|run| RunSummary {
                pending: pending.remove(run.id.as_str()).unwrap_or_default(),
                run,
            })
            .collect())
    }

    /// The calls of one run that wait for people.
    ///
    /// # Errors
    ///
    /// When there is no such run, the database fails, or a row does not hold what this library
    /// writes.
    pub async fn pending(&self, run: &RunId) -> Result<Vec<PendingCall>, StoreError> {
        let record = self.run(run).await?;
        let mut pending = self.pending_of(std::slice::from_ref(&record)).await?;
        Ok(pending.remove(run.as_str()).unwrap_or_default())
    }

    async fn pending_of(
        &self,
        runs: &[RunRecord],
    ) -> Result<BTreeMap<String, Vec<PendingCall>>, StoreError> {
        let waiting = CallState::ALL
            .into_iter()
            .filter(|state| state.needs_person());
        let found = calls::Entity::find()
            .filter(calls::Column::RunId.is_in(runs.iter().map(|run| run.id.as_str())))
            .filter(calls::Column::State.is_in(waiting.map(CallState::as_str)))
            .order_by_asc(calls::Column::Step)
            .order_by_asc(calls::Column::Position)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("list pending calls"))?;
        let votes = decisions::Entity::find()
            .filter(decisions::Column::CallId.is_in(found.iter().map(|call| call.id.as_str())))
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read decisions"))?;
        let votes = votes
            .iter()
            .map(rows::decision_of)
            .collect::<Result<Vec<_>, _>>()?;
        let mut pending = BTreeMap::<_, Vec<_>>::new();
        for row in &found {
            let Some(run) = runs.iter().find(|run| run.id.as_str() == row.run_id) else {
                continue;
            };
            let decided = votes
                .iter()
                .filter(|(call, _)| *call == row.id)
                .map(|(_, vote)| vote);
            if let Some(call) = pending_call(run, rows::call(row)?, decided) {
                pending.entry(row.run_id.clone()).or_default().push(call);
            }
        }
        Ok(pending)
    }
}

/// What a person is shown of a call, or nothing where it does not wait for one.
fn pending_call<'a>(
    run: &RunRecord,
    call: CallRecord,
    decisions: impl Iterator<Item = &'a StoredDecision>,
) -> Option<PendingCall> {
    let kind = match call.state {
        CallState::AwaitingApproval => PendingKind::Approval,
        CallState::AwaitingInput => PendingKind::Question,
        CallState::InDoubt => PendingKind::InDoubt,
        _ => return None,
    };
    let nonce = call.nonce?;
    let approvals = decisions
        .filter(|stored| stored.nonce == nonce && stored.decision.kind == DecisionKind::Approve)
        .map(|stored| Vote::new(stored.approver.clone(), stored.decision.at))
        .collect();
    Some(PendingCall {
        run: call.run,
        call: call.id,
        agent: run.agent.clone(),
        tool: call.tool,
        kind,
        arguments: call.arguments?,
        fingerprint: call.fingerprint?,
        reasons: call.gate.reasons,
        quorum: call.quorum,
        approvals,
        requester: run.requester.clone(),
        requested_at: call.requested_at?,
        expires_at: call.expires_at?,
        payload: call.payload,
    })
}
