use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _,
    Select,
    sea_query::{Alias, Expr, ExprTrait as _, Func, Query, SelectStatement, SimpleExpr},
};

use super::{
    CallRecord, RunRecord, RunStatus, Store, StoreError, StoredDecision,
    entity::{calls, decisions, runs},
    rows,
};
use crate::{
    approval::{DecisionKind, PendingCall, PendingKind, Vote},
    call::{CallState, RunId, Timestamp},
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
    /// Runs on this thread only.
    pub thread: Option<String>,
    /// Runs with a call of this tool that waits for a person.
    pub tool: Option<String>,
    /// Runs with a call that waits in this way.
    pub kind: Option<PendingKind>,
    /// Runs that were started then or later.
    pub since: Option<Timestamp>,
    /// Runs that were started before then.
    pub until: Option<Timestamp>,
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

    /// Runs on this thread only.
    pub fn thread(mut self, id: impl Into<String>) -> Self {
        self.thread = Some(id.into());
        self
    }

    /// Runs with a call of this tool that waits for a person, in the run or below it.
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Runs with a call that waits in this way, in the run or below it.
    pub fn kind(mut self, kind: PendingKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Runs that were started at this time or later, on the database's clock.
    pub fn since(mut self, time: Timestamp) -> Self {
        self.since = Some(time);
        self
    }

    /// Runs that were started before this time, on the database's clock.
    pub fn until(mut self, time: Timestamp) -> Self {
        self.until = Some(time);
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
    /// Runs that match, with what waits in them and below them; a page at a time, oldest first.
    /// Runs that were delegated are part of their root.
    ///
    /// # Errors
    ///
    /// When the database fails or a row does not hold what this library writes.
    pub async fn runs(
        &self,
        filter: &RunFilter,
        page: &Page,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let found = listed(filter, page)
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

    /// The calls of one run, and of the runs below a root, that wait for people.
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
        let roots = runs.iter().filter(|run| run.parent.is_none());
        let below = self
            .delegated_by(roots.map(|run| run.id.as_str()).collect::<Vec<_>>())
            .await?;
        let threads: BTreeMap<_, _> = runs
            .iter()
            .filter_map(|run| Some((run.id.as_str(), run.thread.as_ref()?)))
            .collect();
        let ids = runs.iter().chain(&below).map(|run| run.id.as_str());
        let found = calls::Entity::find()
            .filter(calls::Column::RunId.is_in(ids))
            .filter(calls::Column::State.is_in(waiting(None)))
            .order_by_asc(calls::Column::RunId)
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
            let mut all = runs.iter().chain(&below);
            let Some(run) = all.find(|run| run.id.as_str() == row.run_id) else {
                continue;
            };
            let decided = votes
                .iter()
                .filter(|(call, _)| *call == row.id)
                .map(|(_, vote)| vote);
            if let Some(mut call) = pending_call(run, rows::call(row)?, decided) {
                call.thread = threads.get(run.root.as_str()).map(|&id| id.clone());
                // Under the run that was asked for: a root answers for those below it.
                let asked = runs.iter().any(|asked| asked.id == run.id);
                let under = if asked { &run.id } else { &run.root };
                pending.entry(under.to_string()).or_default().push(call);
            }
        }
        Ok(pending)
    }
}

/// The runs of a page.
fn listed(filter: &RunFilter, page: &Page) -> Select<runs::Entity> {
    let mut query = runs::Entity::find()
        .filter(runs::Column::ParentId.is_null())
        .order_by_asc(runs::Column::Id)
        .limit(page.size.clamp(1, 1000));
    // A thread has few runs, and a planner without statistics would rather go through all that
    // wait: an expression keeps it from the index over agent and status.
    let plain = |column: runs::Column| -> SimpleExpr {
        match &filter.thread {
            Some(_) => Func::coalesce([Expr::col((runs::Entity, column)), Expr::val("")]).into(),
            None => Expr::col((runs::Entity, column)),
        }
    };
    if let Some(agent) = &filter.agent {
        query = query.filter(plain(runs::Column::Agent).eq(agent.as_str()));
    }
    if let Some(requester) = &filter.requester {
        query = query.filter(runs::Column::RequesterId.eq(requester.as_str()));
    }
    if let Some(status) = filter.status {
        query = query.filter(plain(runs::Column::Status).eq(status.as_str()));
    }
    if let Some(thread) = &filter.thread {
        query = query.filter(runs::Column::ThreadId.eq(thread.as_str()));
    }
    if let Some(since) = filter.since {
        query = query.filter(runs::Column::CreatedAt.gte(since.as_micros()));
    }
    if let Some(until) = filter.until {
        query = query.filter(runs::Column::CreatedAt.lt(until.as_micros()));
    }
    if filter.tool.is_some() || filter.kind.is_some() {
        query = query.filter(Expr::exists(call_that_waits(filter)));
    }
    if let Some(after) = &page.after {
        query = query.filter(runs::Column::Id.gt(after.as_str()));
    }
    query
}

/// The states in which a call waits for a person, in one way or in all.
fn waiting(kind: Option<PendingKind>) -> Vec<&'static str> {
    let state = |kind| match kind {
        PendingKind::Approval => CallState::AwaitingApproval,
        PendingKind::Question => CallState::AwaitingInput,
        PendingKind::InDoubt => CallState::InDoubt,
    };
    CallState::ALL
        .into_iter()
        .filter(|found| found.needs_person())
        .filter(|found| kind.is_none_or(|kind| *found == state(kind)))
        .map(CallState::as_str)
        .collect()
}

/// A call that waits as the filter says, in a run or below it. Looked up for each run of a page in
/// turn: a list of all that wait would be made anew for every page.
fn call_that_waits(filter: &RunFilter) -> SelectStatement {
    let below = Alias::new("below");
    let mut query = Query::select();
    query
        .expr(Expr::val(1))
        .from_as(runs::Entity, below.clone())
        .inner_join(
            calls::Entity,
            Expr::col((calls::Entity, calls::Column::RunId))
                .equals((below.clone(), runs::Column::Id)),
        )
        .and_where(
            Expr::col((below, runs::Column::RootId)).equals((runs::Entity, runs::Column::Id)),
        )
        .and_where(Expr::col((calls::Entity, calls::Column::State)).is_in(waiting(filter.kind)));
    if let Some(tool) = &filter.tool {
        query.and_where(Expr::col((calls::Entity, calls::Column::Tool)).eq(tool.as_str()));
    }
    query
}

/// What a person is shown of a call, or nothing where it does not wait for one.
pub(super) fn pending_call<'a>(
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
        root: run.root.clone(),
        path: run.path.clone(),
        thread: None,
        call: call.id,
        agent: run.agent.clone(),
        tool: call.tool,
        kind,
        arguments: call.arguments?,
        fingerprint: call.fingerprint?,
        reasons: call.gate.reasons,
        policies: call.gate.policies,
        quorum: call.quorum,
        approvals,
        amended_by: call.gate.amended_by,
        requester: run.requester.clone(),
        requested_at: call.requested_at?,
        expires_at: call.expires_at?,
        payload: call.payload,
        answer_schema: None,
        seen_from: 0,
    })
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use sea_orm::{ConnectionTrait as _, DbBackend, QueryTrait as _};

    use super::*;

    /// How SQLite finds the runs of a page.
    async fn plan(store: &Store, filter: &RunFilter) -> String {
        let after = Page {
            after: Some(RunId::new()),
            ..Page::default()
        };
        let mut statement = listed(filter, &after).build(DbBackend::Sqlite);
        statement.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql);
        let rows = store.inner.reader.query_all_raw(statement).await.unwrap();
        let steps = rows
            .iter()
            .map(|row| row.try_get::<String>("", "detail").unwrap());
        steps.collect::<Vec<_>>().join("; ")
    }

    #[tokio::test]
    async fn a_page_is_found_by_an_index_and_in_its_order() {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let suspended = || RunFilter::suspended().agent("desk");
        for (filter, index) in [
            (suspended(), "runs_by_status"),
            (
                suspended().since(Timestamp::from_micros(1)),
                "runs_by_status",
            ),
            (suspended().thread("talk"), "runs_by_thread"),
            (RunFilter::default().requester("alice"), "runs_by_requester"),
            (suspended().tool("pay"), "runs_by_status"),
            (suspended().tool("pay"), "calls_by_run"),
        ] {
            let plan = plan(&store, &filter).await;
            assert!(plan.contains(index), "{filter:?}: {plan}");
            assert!(!plan.contains("SCAN"), "{filter:?}: {plan}");
            // A thread is as long as a conversation, and may be sorted.
            let sorted = plan.contains("TEMP B-TREE FOR ORDER BY");
            assert!(!sorted || filter.thread.is_some(), "{filter:?}: {plan}");
        }
    }
}
