//! The past that policies are asked with, read in the transaction that admits a call.
//!
//! Whoever admits a call under a fact first locks the scope that the fact counts in, so that two
//! admissions in one scope, of whatever instances, come one after the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use agentkit_policy::FactScope;
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, PaginatorTrait as _,
    QueryFilter as _, QuerySelect as _, QueryTrait as _, Set,
    sea_query::{Expr, OnConflict, SimpleExpr},
};

use super::{
    GateRecord, RunRecord, Store, StoreError, backend,
    entity::{calls, decisions, runs, scopes, threads},
    labels,
    transaction::RunTransaction,
};
use crate::{
    approval::DecisionKind,
    call::{CallId, CallState, Digest, FieldHasher, Timestamp},
};

const READING: &str = "read earlier calls";

/// Which part of the past is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Earlier calls.
    Calls(CallsLook),
    /// What the session has touched.
    Labels,
    /// When the session began, and what came since a person spoke.
    Conversation,
}

/// Which earlier calls are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallsLook {
    pub(crate) scope: FactScope,
    pub(crate) tools: Vec<String>,
    /// How far back; none for all of the session.
    pub(crate) window: Option<Duration>,
    /// Whether it matters who approved them.
    pub(crate) approvers: bool,
}

impl Look {
    /// What everyone who looks there, or adds to it, does one after another.
    const fn scope(&self) -> FactScope {
        match self {
            Self::Calls(look) => look.scope,
            Self::Labels | Self::Conversation => FactScope::Session,
        }
    }
}

/// An earlier call.
#[derive(Clone, Debug)]
pub(crate) struct PastCall {
    pub(crate) root: String,
    pub(crate) session: String,
    pub(crate) requester: String,
    pub(crate) tool: String,
    pub(crate) state: CallState,
    /// Canonical; none where they were erased, or never decoded.
    pub(crate) arguments: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) admitted_at: Timestamp,
    /// When it changed last: when it ended, where it did.
    pub(crate) updated_at: Timestamp,
    /// Who approved it, where that was looked for.
    pub(crate) approvers: BTreeSet<String>,
}

/// Where a run stands in its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversation {
    pub(crate) started_at: Timestamp,
    /// The messages of a person that began runs, this one's included.
    pub(crate) turn: i64,
    /// Admitted calls of the run and of all below and above it since a person spoke: began the
    /// root run, or answered a question in it.
    pub(crate) calls_since_user: u64,
}

/// What was looked for, and what was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    pub(crate) looks: Vec<Look>,
    pub(crate) calls: Vec<PastCall>,
    pub(crate) labels: BTreeSet<String>,
    pub(crate) conversation: Option<Conversation>,
}

/// The session of a run: its thread, or the root run where there is no thread.
pub(crate) fn session_of(run: &RunRecord) -> &str {
    run.thread.as_deref().unwrap_or(run.root.as_str())
}

const IN_FLIGHT: [CallState; 7] = [
    CallState::Ready,
    CallState::AwaitingApproval,
    CallState::Approved,
    CallState::Executing,
    CallState::Delegated,
    CallState::AwaitingInput,
    CallState::InDoubt,
];

/// What is over and may count all the same.
const ENDED: [CallState; 4] = [
    CallState::Succeeded,
    CallState::Failed,
    CallState::Denied,
    CallState::Declined,
];

impl PastCall {
    pub(crate) fn in_flight(&self) -> bool {
        IN_FLIGHT.contains(&self.state)
    }
}

/// So long before a moment.
pub(crate) fn before(now: Timestamp, window: Duration) -> Timestamp {
    let micros = i64::try_from(window.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

/// What counts in the same scope as a run.
pub(super) fn scope_id(scope: FactScope, run: &RunRecord) -> Digest {
    let mut fields = FieldHasher::new("agentkit/scope/v1");
    fields.optional(run.requester.tenant.as_deref().map(str::as_bytes));
    match scope {
        // A run tree is a part of one session.
        FactScope::RunTree | FactScope::Session => {
            fields.field(b"session").field(session_of(run).as_bytes())
        }
        FactScope::Principal => fields
            .field(b"principal")
            .field(run.requester.id.as_bytes()),
        FactScope::Tenant => fields.field(b"tenant"),
    };
    fields.finish()
}

/// Locks the scopes in the order of their keys, and moves the transaction's time past everything
/// that was admitted in them.
pub(super) async fn lock(
    transaction: &mut RunTransaction,
    run: &RunRecord,
    looks: &[Look],
) -> Result<(), StoreError> {
    let doing = "lock what a fact counts in";
    let mut ids: Vec<_> = looks
        .iter()
        .map(|look| scope_id(look.scope(), run).as_bytes().to_vec())
        .collect();
    ids.sort();
    ids.dedup();
    for id in &ids {
        let new = scopes::ActiveModel {
            id: Set(id.clone()),
            last_at: Set(0),
        };
        let known = OnConflict::column(scopes::Column::Id)
            .do_nothing_on([scopes::Column::Id])
            .to_owned();
        scopes::Entity::insert(new)
            .on_conflict(known)
            .exec_without_returning(transaction.tx())
            .await
            .map_err(StoreError::while_trying(doing))?;
        let scope = scopes::Entity::find_by_id(id.clone())
            .lock_exclusive()
            .one(transaction.tx())
            .await
            .map_err(StoreError::while_trying(doing))?;
        let last = scope.map_or(0, |scope| scope.last_at);
        // What others wrote while this one waited for the lock is not later than this.
        let now = backend::now(transaction.tx()).await?;
        let after = Timestamp::from_micros(last.saturating_add(1));
        transaction.now = transaction.now.max(now).max(after);
    }
    for id in ids {
        scopes::Entity::update_many()
            .col_expr(
                scopes::Column::LastAt,
                Expr::value(transaction.now.as_micros()),
            )
            .filter(scopes::Column::Id.eq(id))
            .exec(transaction.tx())
            .await
            .map_err(StoreError::while_trying(doing))?;
    }
    Ok(())
}

impl Store {
    /// The calls beside one, as they stand now: for showing what a policy would say. What is
    /// decided reads them again, under the locks of their scopes.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "only a server shows it")
    )]
    pub(crate) async fn past_beside(
        &self,
        run: &RunRecord,
        call: &CallId,
        looks: &[Look],
        now: Timestamp,
    ) -> Result<Past, StoreError> {
        read_with(&self.inner.reader, now, run, Some(call), looks).await
    }
}

/// What is looked for, without the call that is decided about: a call that is decided again does
/// not count twice.
pub(super) async fn read(
    transaction: &RunTransaction,
    run: &RunRecord,
    call: Option<&CallId>,
    looks: &[Look],
) -> Result<Past, StoreError> {
    read_with(transaction.tx(), transaction.now, run, call, looks).await
}

async fn read_with(
    connection: &impl ConnectionTrait,
    now: Timestamp,
    run: &RunRecord,
    call: Option<&CallId>,
    looks: &[Look],
) -> Result<Past, StoreError> {
    let mut past = Past {
        looks: looks.to_vec(),
        ..Past::default()
    };
    let mut found = BTreeMap::new();
    for look in looks {
        match look {
            Look::Calls(look) => {
                for row in calls_of(connection, now, run, look).await? {
                    let (_, approvers) = found
                        .entry(row.id.clone())
                        .or_insert_with(|| (row, look.approvers));
                    *approvers |= look.approvers;
                }
            }
            Look::Labels => {
                let session = scope_id(FactScope::Session, run);
                past.labels = labels::beside(connection, &session, call).await?;
            }
            Look::Conversation => {
                let found = Box::pin(conversation(connection, run, call));
                past.conversation = Some(found.await?);
            }
        }
    }
    if let Some(call) = call {
        found.remove(call.as_str());
    }
    let wanted = found.values().filter(|(_, wanted)| *wanted);
    let mut approvers = approvers(connection, wanted.map(|(row, _)| row)).await?;
    for (row, _) in found.into_values() {
        let of_call = approvers.remove(&row.id).unwrap_or_default();
        past.calls.push(earlier(row, of_call)?);
    }
    Ok(past)
}

fn states(states: &[CallState]) -> SimpleExpr {
    calls::Column::State.is_in(states.iter().map(|state| state.as_str()))
}

async fn calls_of(
    connection: &impl ConnectionTrait,
    now: Timestamp,
    run: &RunRecord,
    look: &CallsLook,
) -> Result<Vec<calls::Model>, StoreError> {
    let tenant = run.requester.tenant.as_deref().unwrap_or_default();
    let of = match look.scope {
        FactScope::RunTree | FactScope::Session => calls::Column::Session.eq(session_of(run)),
        FactScope::Principal => calls::Column::RequesterId.eq(run.requester.id.as_str()),
        FactScope::Tenant => calls::Column::Tenant.eq(tenant),
    };
    let mut ended = Condition::all().add(states(&ENDED));
    if let Some(window) = look.window {
        let since = before(now, window);
        // A call is not admitted after it ended.
        ended = ended.add(calls::Column::UpdatedAt.gte(since.as_micros()));
    }
    calls::Entity::find()
        .filter(of)
        .filter(calls::Column::Tenant.eq(tenant))
        .filter(calls::Column::Tool.is_in(look.tools.iter().map(String::as_str)))
        .filter(Condition::any().add(states(&IN_FLIGHT)).add(ended))
        .all(connection)
        .await
        .map_err(StoreError::while_trying(READING))
}

fn earlier(row: calls::Model, approvers: BTreeSet<String>) -> Result<PastCall, StoreError> {
    let state = row
        .state
        .parse()
        .map_err(|error| StoreError::corrupt("state", &row.id, error))?;
    Ok(PastCall {
        root: row.root_id,
        session: row.session,
        requester: row.requester_id,
        tool: row.tool,
        state,
        arguments: row.arguments,
        outcome: row.outcome,
        admitted_at: Timestamp::from_micros(row.admitted_at),
        updated_at: Timestamp::from_micros(row.updated_at),
        approvers,
    })
}

/// How many calls are named in one statement: databases bound the number of parameters.
const CHUNK: usize = 1000;

/// Who approved calls on the occasions on which they were released, by the ids of the calls.
async fn approvers(
    connection: &impl ConnectionTrait,
    rows: impl Iterator<Item = &calls::Model>,
) -> Result<BTreeMap<String, BTreeSet<String>>, StoreError> {
    let mut occasions = BTreeMap::new();
    for row in rows {
        let gate: GateRecord = serde_json::from_str(&row.gate)
            .map_err(|error| StoreError::corrupt("gate record", &row.id, error))?;
        if let Some(occasion) = gate.approved {
            occasions.insert(row.id.as_str(), occasion.nonce);
        }
    }
    let ids: Vec<&str> = occasions.keys().copied().collect();
    let mut approvers = BTreeMap::<_, BTreeSet<_>>::new();
    for ids in ids.chunks(CHUNK) {
        let votes = decisions::Entity::find()
            .filter(decisions::Column::CallId.is_in(ids.iter().copied()))
            .filter(decisions::Column::Kind.eq(DecisionKind::Approve.as_str()))
            .all(connection)
            .await
            .map_err(StoreError::while_trying(READING))?;
        for vote in votes {
            let nonce = occasions.get(vote.call_id.as_str());
            if nonce.is_some_and(|nonce| nonce.as_bytes().as_slice() == vote.nonce) {
                let of_call = approvers.entry(vote.call_id).or_default();
                of_call.insert(vote.approver_id);
            }
        }
    }
    Ok(approvers)
}

async fn conversation(
    connection: &impl ConnectionTrait,
    run: &RunRecord,
    call: Option<&CallId>,
) -> Result<Conversation, StoreError> {
    let root = runs::Entity::find_by_id(run.root.as_str())
        .one(connection)
        .await
        .map_err(StoreError::while_trying(READING))?
        .ok_or_else(|| StoreError::UnknownRun {
            run: run.root.to_string(),
        })?;
    let began = Timestamp::from_micros(root.created_at);
    let (started_at, turn) = match &root.thread_id {
        Some(thread) => on_thread(connection, &root, thread).await?,
        None => (began, 1),
    };
    let tree = || {
        runs::Entity::find()
            .select_only()
            .column(runs::Column::Id)
            .filter(runs::Column::RootId.eq(run.root.as_str()))
            .into_query()
    };
    let of_tree = calls::Entity::find()
        .select_only()
        .column(calls::Column::Id)
        .filter(calls::Column::RunId.in_subquery(tree()))
        .into_query();
    let answered: Option<Option<i64>> = decisions::Entity::find()
        .select_only()
        .column_as(decisions::Column::DecidedAt.max(), "last")
        .filter(decisions::Column::Kind.eq(DecisionKind::Answer.as_str()))
        .filter(decisions::Column::CallId.in_subquery(of_tree))
        .into_tuple()
        .one(connection)
        .await
        .map_err(StoreError::while_trying(READING))?;
    let spoke = answered
        .flatten()
        .map_or(began, |at| began.max(Timestamp::from_micros(at)));
    let ran = [CallState::Succeeded, CallState::Failed];
    let admitted = Condition::any().add(states(&IN_FLIGHT)).add(states(&ran));
    let calls_since_user = calls::Entity::find()
        .filter(calls::Column::RunId.in_subquery(tree()))
        .filter(calls::Column::AdmittedAt.gt(spoke.as_micros()))
        .filter(admitted)
        .filter(calls::Column::Id.ne(call.map_or("", CallId::as_str)))
        .count(connection)
        .await
        .map_err(StoreError::while_trying(READING))?;
    Ok(Conversation {
        started_at,
        turn,
        calls_since_user,
    })
}

/// When a thread began, and how many of its runs were begun up to this one.
async fn on_thread(
    connection: &impl ConnectionTrait,
    root: &runs::Model,
    thread: &str,
) -> Result<(Timestamp, i64), StoreError> {
    let tenant = root.tenant.clone().unwrap_or_default();
    let found = threads::Entity::find_by_id((tenant, thread.to_owned()))
        .one(connection)
        .await
        .map_err(StoreError::while_trying(READING))?;
    let began = Timestamp::from_micros(root.created_at);
    let Some(found) = found else {
        return Ok((began, 1));
    };
    let turn = match root.thread_position {
        Some(position) => position,
        // It only reads the thread, and has no place of its own there.
        None => runs::Entity::find()
            .filter(runs::Column::ThreadId.eq(thread))
            .filter(runs::Column::ThreadPosition.is_not_null())
            .filter(match &root.tenant {
                Some(tenant) => runs::Column::Tenant.eq(tenant.as_str()),
                None => runs::Column::Tenant.is_null(),
            })
            .filter(runs::Column::CreatedAt.lt(root.created_at))
            .count(connection)
            .await
            .map_err(StoreError::while_trying(READING))?
            .saturating_add(1)
            .try_into()
            .unwrap_or(i64::MAX),
    };
    Ok((Timestamp::from_micros(found.created_at).min(began), turn))
}
