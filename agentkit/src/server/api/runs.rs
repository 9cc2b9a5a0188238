#![allow(unused_qualifications, reason = "in the expansion of utoipa")]

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    super::{
        Problem,
        extract::{self, Path, Query, Who, id},
        sight::Sight,
        state::Server,
        view::{RunPage, RunView},
    },
    events,
    pending::page_size,
    threads::On,
};
use crate::{
    call::Principal,
    gate::RequireApproval,
    run::{CancelError, CancelOutcome, Input, Running},
    store::{Page, RunFilter, RunStatus},
};

/// What a run is started with. On whose behalf it acts is the caller.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    /// The message to the agent.
    #[schema(min_length = 1)]
    input: String,
    /// Whether every call of the run needs an approval, whatever tools and policy say.
    #[serde(default)]
    require_approval: bool,
    /// The conversation that the run belongs to.
    #[serde(default)]
    thread: Option<On>,
    /// How often the model may answer, over all suspensions: 32 unless said otherwise.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1000)]
    max_steps: Option<u32>,
}

/// Starts a run on the caller's behalf. It goes on whatever becomes of the connection. With
/// `accept: text/event-stream` the answer is the stream of its events, the first of which,
/// `run`, names it.
#[utoipa::path(post, path = "/v1/agents/{agent}/runs", tag = "runs", operation_id = "start_run",
    params(("agent" = String, Path, description = "The agent's name")),
    request_body = Start,
    responses(
        (status = 201, body = RunView),
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn start(
    State(server): State<Server>,
    Who(who): Who,
    Path(agent): Path<String>,
    headers: HeaderMap,
    extract::Json(body): extract::Json<Start>,
) -> Result<Response, Problem> {
    let runtime = server.agent(&agent)?;
    if body.input.trim().is_empty() {
        return Err(Problem::malformed(
            "`input`: it is blank; say what the agent is to do",
        ));
    }
    let mut input = Input::new(who.clone(), body.input);
    if body.require_approval {
        input = input.require_approval(RequireApproval::On);
    }
    if let Some(thread) = body.thread {
        input = input.thread(thread.into());
    }
    match body.max_steps {
        None => {}
        Some(steps @ 1..=1000) => input = input.max_steps(steps),
        Some(steps) => {
            let detail = format!("`max_steps`: it is {steps}; it is from 1 to 1000");
            return Err(Problem::malformed(detail));
        }
    }
    let wants_stream = wants_stream(&headers);
    let open = if wants_stream {
        Some(server.open_stream(&who)?)
    } else {
        None
    };
    let running = runtime.start(input).await?;
    server.metrics.runs.inc();
    if let Some(open) = open {
        return Ok(events::of_work(server, running, open).into_response());
    }
    respond(server, &who, running, StatusCode::CREATED).await
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

/// The run as it stands, while the work on it goes on.
async fn respond(
    server: Server,
    who: &Principal,
    running: Running,
    status: StatusCode,
) -> Result<Response, Problem> {
    let run = running.run().clone();
    let following = std::sync::Arc::clone(&server);
    tokio::spawn(async move { following.follow(running).await });
    let sight = Sight::of(&server, who).await?;
    let (record, seen) = sight.run(&run).await?;
    let mut response = (status, Json(RunView::of(&server, &record, &seen))).into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/runs/{run}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Which runs are listed.
#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Runs of this agent only.
    agent: Option<String>,
    /// Runs of this status only.
    #[param(value_type = Option<String>,
        pattern = "^(running|suspended|interrupted|finished|cancelled)$")]
    status: Option<RunStatus>,
    /// Runs on behalf of this person only; someone else's are for auditors.
    requester: Option<String>,
    /// Runs on this thread only.
    thread: Option<String>,
    /// The last run of the page before.
    after: Option<String>,
    /// How many, from 1 to 200; 50 unless said otherwise.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// The caller's runs, oldest first; an auditor may ask for another person's.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", operation_id = "list_runs",
    params(Filter),
    responses(
        (status = 200, body = RunPage),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn list(
    State(server): State<Server>,
    Who(who): Who,
    Query(query): Query<Filter>,
) -> Result<Json<RunPage>, Problem> {
    let size = page_size(query.limit)?;
    let requester = query.requester.unwrap_or_else(|| who.id.clone());
    let mut filter = RunFilter::default().requester(&requester);
    filter.agent = query.agent;
    filter.status = query.status;
    filter.thread = query.thread;
    let after = match &query.after {
        Some(after) => Some(id(after, "run")?),
        None => None,
    };
    let page = Page {
        after,
        size: u64::try_from(size).unwrap_or(50),
    };
    let found = server.store.runs(&filter, &page).await?;
    let next = (found.len() == size)
        .then(|| found.last().map(|last| last.run.id.to_string()))
        .flatten();
    let sight = Sight::of(&server, &who).await?;
    let mut runs = Vec::new();
    for summary in found {
        // Ids are unique within a tenant at most.
        match sight.run(&summary.run.id).await {
            Ok((record, seen)) => runs.push(RunView::of(&server, &record, &seen)),
            Err(problem) if problem.status() == StatusCode::NOT_FOUND => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(Json(RunPage { runs, next }))
}

/// One run, with what waits in it.
#[utoipa::path(get, path = "/v1/runs/{run}", tag = "runs", operation_id = "read_run",
    params(("run" = String, Path, description = "The run")),
    responses(
        (status = 200, body = RunView),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn read(
    State(server): State<Server>,
    Who(who): Who,
    Path(run): Path<String>,
) -> Result<Json<RunView>, Problem> {
    let run = id(&run, "run")?;
    let sight = Sight::of(&server, &who).await?;
    let (record, seen) = sight.run(&run).await?;
    Ok(Json(RunView::of(&server, &record, &seen)))
}

/// Continues a run of the caller from its last durable record, as after a failure of the model.
/// With `accept: text/event-stream` the answer is the stream of its events.
#[utoipa::path(post, path = "/v1/runs/{run}/resume", tag = "runs", operation_id = "resume_run",
    params(("run" = String, Path, description = "The run")),
    responses(
        (status = 202, body = RunView),
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn resume(
    State(server): State<Server>,
    Who(who): Who,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = id(&run, "run")?;
    let record = Sight::of(&server, &who).await?.own_run(&run).await?;
    let open = if wants_stream(&headers) {
        Some(server.open_stream(&who)?)
    } else {
        None
    };
    let running = server.agent(&record.agent)?.resume(&run).await?;
    if let Some(open) = open {
        return Ok(events::of_work(server, running, open).into_response());
    }
    respond(server, &who, running, StatusCode::ACCEPTED).await
}

/// What became of a request to cancel a run.
#[derive(Serialize, ToSchema)]
pub(super) struct CancelView {
    /// `cancelled`, `stopping`, `in_doubt` or `finished`.
    outcome: &'static str,
}

/// Cancels a run and everything below it, on behalf of its requester or of an operator. Calls that
/// wait can no longer be decided; tools that execute are asked to stop, and what they report is
/// recorded first.
#[utoipa::path(post, path = "/v1/runs/{run}/cancel", tag = "runs", operation_id = "cancel_run",
    params(("run" = String, Path, description = "The run")),
    responses(
        (status = 200, body = CancelView),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn cancel(
    State(server): State<Server>,
    Who(who): Who,
    Path(run): Path<String>,
) -> Result<Json<CancelView>, Problem> {
    let run = id(&run, "run")?;
    let record = server.store.run(&run).await?;
    let root = record.path.first().and_then(|root| server.agents.get(root));
    let runtime = root.ok_or_else(|| Problem::unknown("run"))?;
    let outcome = match runtime.cancel(&who, &run).await {
        Ok(outcome) => outcome,
        Err(CancelError::Run(error)) => return Err(error.into()),
        Err(error @ CancelError::NotAllowed { .. }) => {
            // Told only to those who may know that the run exists.
            Sight::of(&server, &who).await?.run(&run).await?;
            return Err(Problem::new(StatusCode::FORBIDDEN, "not-allowed", error));
        }
        Err(_) => return Err(Problem::unknown("run")),
    };
    server.feed.nudge();
    Ok(Json(CancelView {
        outcome: match outcome {
            CancelOutcome::Cancelled => "cancelled",
            CancelOutcome::Stopping => "stopping",
            CancelOutcome::InDoubt => "in_doubt",
            CancelOutcome::Finished => "finished",
        },
    }))
}
