//! The past that policies are asked with, read in the transaction that admits a call.
//!
//! Whoever admits a call under a fact first locks the scope that the fact counts in, so that two
//! admissions in one scope, of whatever instances, come one after the other.

use std::{collections::BTreeMap, time::Duration};

use agentkit_policy::FactScope;
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, QueryFilter as _,
    QuerySelect as _, Set,
    sea_query::{Expr, OnConflict},
};

use super::{
    RunRecord, Store, StoreError, backend,
    entity::{calls, scopes},
    transaction::RunTransaction,
};
use crate::call::{CallId, CallState, Digest, FieldHasher, Timestamp};

/// Which earlier calls are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) scope: FactScope,
    pub(crate) tools: Vec<String>,
    /// How far back; none for all of the session.
    pub(crate) window: Option<Duration>,
}

/// An earlier call.
#[derive(Clone, Debug)]
pub(crate) struct PastCall {
    pub(crate) id: String,
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
}

/// What was looked for, and what was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    pub(crate) looks: Vec<Look>,
    pub(crate) calls: Vec<PastCall>,
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

fn scope_id(scope: FactScope, run: &RunRecord) -> Digest {
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
        .map(|look| scope_id(look.scope, run).as_bytes().to_vec())
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
        let mut past = read_with(&self.inner.reader, now, run, looks).await?;
        past.calls.retain(|earlier| earlier.id != call.as_str());
        Ok(past)
    }
}

/// The earlier calls that are asked for, each once.
pub(super) async fn read(
    transaction: &RunTransaction,
    run: &RunRecord,
    looks: &[Look],
) -> Result<Past, StoreError> {
    read_with(transaction.tx(), transaction.now, run, looks).await
}

async fn read_with(
    connection: &impl ConnectionTrait,
    now: Timestamp,
    run: &RunRecord,
    looks: &[Look],
) -> Result<Past, StoreError> {
    let mut found = BTreeMap::new();
    let tenant = run.requester.tenant.as_deref().unwrap_or_default();
    for look in looks {
        let of = match look.scope {
            FactScope::RunTree | FactScope::Session => calls::Column::Session.eq(session_of(run)),
            FactScope::Principal => calls::Column::RequesterId.eq(run.requester.id.as_str()),
            FactScope::Tenant => calls::Column::Tenant.eq(tenant),
        };
        let states = |states: &[CallState]| {
            calls::Column::State.is_in(states.iter().map(|state| state.as_str()))
        };
        let mut ended = Condition::all().add(states(&ENDED));
        if let Some(window) = look.window {
            let since = before(now, window);
            // A call is not admitted after it ended.
            ended = ended.add(calls::Column::UpdatedAt.gte(since.as_micros()));
        }
        let rows = calls::Entity::find()
            .filter(of)
            .filter(calls::Column::Tenant.eq(tenant))
            .filter(calls::Column::Tool.is_in(look.tools.iter().map(String::as_str)))
            .filter(Condition::any().add(states(&IN_FLIGHT)).add(ended))
            .all(connection)
            .await
            .map_err(StoreError::while_trying("read earlier calls"))?;
        for row in rows {
            found.insert(row.id.clone(), row);
        }
    }
    let calls = found
        .into_values()
        .map(|row| {
            let state = row
                .state
                .parse()
                .map_err(|error| StoreError::corrupt("state", &row.id, error))?;
            Ok(PastCall {
                id: row.id,
                root: row.root_id,
                session: row.session,
                requester: row.requester_id,
                tool: row.tool,
                state,
                arguments: row.arguments,
                outcome: row.outcome,
                admitted_at: Timestamp::from_micros(row.admitted_at),
                updated_at: Timestamp::from_micros(row.updated_at),
            })
        })
        .collect::<Result<_, StoreError>>()?;
    Ok(Past {
        looks: looks.to_vec(),
        calls,
    })
}
