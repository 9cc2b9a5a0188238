#![allow(unused_qualifications, reason = "in the expansion of utoipa")]

use axum::{
    Json,
    extract::State,
    http::request::Parts,
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    super::{
        Problem,
        extract::{Path, Query, Who, id},
        sight::{Seen, Sight},
        state::Server,
        view::{
            ApproverRuleView, CallView, DecisionView, PendingPage, PendingView, PreviousView,
            SaidView, spec_of,
        },
    },
    waiting,
};
use crate::{
    call::CallState,
    store::{StoreError, WaitingFilter},
};

/// Which waiting calls are listed.
#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Calls of this agent only.
    agent: Option<String>,
    /// Calls of this tool only.
    tool: Option<String>,
    /// Calls on behalf of this person only.
    requester: Option<String>,
    /// `approval`, `question` or `in_doubt` only.
    #[param(value_type = Option<String>, pattern = "^(approval|question|in_doubt)$")]
    kind: Option<crate::approval::PendingKind>,
    /// The last call of the page before.
    after: Option<String>,
    /// How many, from 1 to 200; 50 unless said otherwise.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

pub(super) fn page_size(limit: Option<u32>) -> Result<usize, Problem> {
    match limit {
        None => Ok(50),
        Some(limit @ 1..=200) => Ok(usize::try_from(limit).unwrap_or(50)),
        Some(limit) => Err(Problem::malformed(format!(
            "the query: `limit` is {limit}; it is from 1 to 200"
        ))),
    }
}

/// What waits for people and is visible to the caller, in the order in which it was proposed.
#[utoipa::path(get, path = "/v1/pending", tag = "pending", operation_id = "list_pending",
    params(Filter),
    responses(
        (status = 200, body = PendingPage),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list(
    State(server): State<Server>,
    Who(who): Who,
    Query(query): Query<Filter>,
) -> Result<Json<PendingPage>, Problem> {
    let size = page_size(query.limit)?;
    let mut after = match &query.after {
        Some(after) => Some(id(after, "call")?),
        None => None,
    };
    let filter = WaitingFilter {
        agent: query.agent,
        tool: query.tool,
        requester: query.requester,
        tenant: who.tenant.clone(),
        states: query
            .kind
            .map(|kind| vec![state_of(kind)])
            .unwrap_or_default(),
    };
    let sight = Sight::of(&server, &who).await?;
    let mut pending = Vec::new();
    // What others may see is skipped; a page is cut short rather than read for ever.
    for _ in 0..20 {
        let batch = server.store.waiting(&filter, after.as_ref(), 100).await?;
        let last = batch.len() < 100;
        for call in batch {
            after = Some(call.call.id.clone());
            if let Some(standing) = sight.standing(&call).await? {
                let seen = Seen { call, standing };
                pending.extend(PendingView::of(&server, &seen));
            }
            if pending.len() == size {
                let next = after.map(|after| after.to_string());
                return Ok(Json(PendingPage { pending, next }));
            }
        }
        if last {
            return Ok(Json(PendingPage {
                pending,
                next: None,
            }));
        }
    }
    let next = after.map(|after| after.to_string());
    Ok(Json(PendingPage { pending, next }))
}

const fn state_of(kind: crate::approval::PendingKind) -> CallState {
    use crate::approval::PendingKind;
    match kind {
        PendingKind::Approval => CallState::AwaitingApproval,
        PendingKind::Question => CallState::AwaitingInput,
        PendingKind::InDoubt => CallState::InDoubt,
    }
}

/// What waits and is visible to the caller, live. The first event, `snapshot`, holds all of it;
/// then `upsert` holds a call that came or changed, and `remove` the id of one that no longer
/// waits. A client that was cut off subscribes again and gets a new snapshot.
#[utoipa::path(get, path = "/v1/pending/live", tag = "pending", operation_id = "live_pending",
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn live(
    State(server): State<Server>,
    Who(who): Who,
    parts: Parts,
) -> Result<Response, Problem> {
    let open = server.open_stream(&who)?;
    let receiver = server.feed.subscribe();
    Ok(waiting::live(server, who, parts, receiver, open).into_response())
}

/// One call, with everything that is needed to decide about it. Also for calls that were decided.
#[utoipa::path(get, path = "/v1/runs/{run}/calls/{call}", tag = "pending",
    operation_id = "read_call",
    params(
        ("run" = String, Path, description = "The run"),
        ("call" = String, Path, description = "The call"),
    ),
    responses(
        (status = 200, body = CallView),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn read(
    State(server): State<Server>,
    Who(who): Who,
    Path((run, call)): Path<(String, String)>,
) -> Result<Json<CallView>, Problem> {
    let (run, call) = (id(&run, "run")?, id(&call, "call")?);
    let sight = Sight::of(&server, &who).await?;
    let seen = sight.call(&run, &call).await?;
    let tool = spec_of(&server, &seen.call);
    let spec = tool.as_ref().map(|tool| tool.spec());
    let rules: Vec<_> = server
        .runtime_of(&seen.call.run)
        .iter()
        .flat_map(|runtime| runtime.policies())
        .flat_map(|policy| policy.approver_rules(&seen.call.call.tool))
        .collect();
    Ok(Json(CallView {
        pending: PendingView::of(&server, &seen),
        state: seen.call.call.state,
        description: spec.map(|spec| spec.description.clone()),
        input_schema: spec.map(|spec| spec.input_schema.clone()),
        resume_schema: spec.and_then(|spec| spec.resume_schema.clone()),
        conversation: said(&server, &seen).await?,
        previous: previous(&server, &sight, &seen).await?,
        approvers: rules
            .into_iter()
            .map(|rule| ApproverRuleView {
                policy: rule.policy.id,
                title: rule.policy.title,
                why: rule.policy.why,
                who: rule.who,
                conditional: rule.conditional,
            })
            .collect(),
        decisions: seen
            .call
            .decisions
            .iter()
            .map(|stored| DecisionView::from(&stored.decision))
            .collect(),
        amended_by: seen.call.call.gate.amended_by.clone(),
        outcome: seen.call.call.outcome.clone(),
    }))
}

/// How much of a conversation an approver is shown: the end of it.
const SAID: usize = 12;

/// What was said in the run up to the call.
async fn said(server: &Server, seen: &Seen) -> Result<Vec<SaidView>, StoreError> {
    let mut said = Vec::new();
    for stored in server.store.messages(&seen.call.run.id).await? {
        if stored.step > seen.call.call.step {
            break;
        }
        // A message of a form that this version does not know is not shown.
        if let Ok(message) = serde_json::from_str(&stored.body) {
            said.extend(SaidView::of(message));
        }
    }
    let skip = said.len().saturating_sub(SAID);
    Ok(said.split_off(skip))
}

/// The last approved call of the tool that the caller may see.
async fn previous(
    server: &Server,
    sight: &Sight<'_>,
    seen: &Seen,
) -> Result<Option<PreviousView>, StoreError> {
    for earlier in server.store.approved_before(&seen.call, 10).await? {
        let Some(view) = PreviousView::of(&earlier) else {
            continue;
        };
        if sight.standing(&earlier).await?.is_some() {
            return Ok(Some(view));
        }
    }
    Ok(None)
}
