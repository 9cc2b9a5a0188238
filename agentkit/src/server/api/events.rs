//! The events of a run as server-sent events. The id of each is its place among all events of the
//! run, so that a client that was cut off attaches again after the last one that it saw, to any
//! instance.

#![allow(unused_qualifications, reason = "in the expansion of utoipa")]

use std::convert::Infallible;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, request::Parts},
    response::{
        IntoResponse as _, Response,
        sse::{Event, Sse},
    },
};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::{
    super::{
        Problem,
        extract::{Path, Query, Who, id},
        following::Followed,
        sight::Sight,
        state::{OpenStream, Server},
    },
    sse::{event, keep_alive},
};
use crate::{
    call::Canonical,
    run::{RunEvent, Running, Sequenced},
};

/// Where a client attaches.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Position {
    /// The id of the last event that the client saw; the header `Last-Event-ID` goes before it.
    #[param(minimum = 0)]
    after: Option<i64>,
}

/// Attaches to the events of a run, from its first one or after `Last-Event-ID`: those that were,
/// and those that come, until the run is over or waits for people. 204 where there are no more. For
/// the run's requester and for auditors; a run below another one is shown from the root.
#[utoipa::path(get, path = "/v1/runs/{run}/events", tag = "runs", operation_id = "attach",
    params(("run" = String, Path, description = "The run"), Position),
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"),
        (status = 204, description = "There are no more"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn attach(
    State(server): State<Server>,
    Who(who): Who,
    Path(run): Path<String>,
    Query(query): Query<Position>,
    parts: Parts,
) -> Result<Response, Problem> {
    let after = match last_event_id(&parts.headers)? {
        Some(after) => after,
        None => query.after.unwrap_or(0),
    };
    let run = id(&run, "run")?;
    let run = Sight::of(&server, &who).await?.whole_run(&run).await?;
    Ok(
        match Followed::attached(&server, who, parts, &run, after).await? {
            Some(followed) => stream_of(followed).into_response(),
            None => StatusCode::NO_CONTENT.into_response(),
        },
    )
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    match number {
        Some(number @ 0..) => Ok(Some(number)),
        _ => Err(Problem::malformed(
            "the header `last-event-id`: send the id of an event",
        )),
    }
}

/// The events of a run that this instance works on; the first one names the run.
pub(super) fn of_work(
    server: Server,
    running: Running,
    open: OpenStream,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let named = event("run", &json!({ "run": running.run() }));
    let rest = numbered_events(Followed::work(server, running, open));
    let all = stream::once(async move { Ok(named) }).chain(rest);
    Sse::new(all).keep_alive(keep_alive())
}

fn stream_of(followed: Followed) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(numbered_events(followed)).keep_alive(keep_alive())
}

fn numbered_events(followed: Followed) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(followed, async |mut followed| {
        let next = followed.next().await?;
        Some((Ok(numbered(&next)), followed))
    })
}

fn numbered(next: &Sequenced) -> Event {
    let (name, data) = told(&next.event);
    event(name, &data).id(next.sequence.to_string())
}

fn told(event: &RunEvent) -> (&'static str, Value) {
    match event {
        RunEvent::StepStarted { step } => ("step_started", json!({ "step": step })),
        RunEvent::TextDelta { text } => ("text", json!({ "text": text })),
        RunEvent::ReasoningDelta { text } => ("reasoning", json!({ "text": text })),
        RunEvent::ToolInputStarted { index, tool } => (
            "tool_input_started",
            json!({ "index": index, "tool": tool }),
        ),
        RunEvent::ToolInputDelta { index, json: text } => {
            ("tool_input", json!({ "index": index, "json": text }))
        }
        RunEvent::ToolCall {
            call,
            tool,
            arguments,
        } => {
            let text = arguments.as_ref().map(Canonical::as_str);
            (
                "tool_call",
                json!({ "call": call, "tool": tool, "arguments_text": text }),
            )
        }
        RunEvent::Delegated { call, agent, event } => {
            let (name, data) = told(event);
            let data = json!({ "call": call, "agent": agent, "event": name, "data": data });
            ("delegated", data)
        }
        RunEvent::Pending(pending) => (
            "pending",
            json!({
                "run": pending.run,
                "call": pending.call,
                "tool": pending.tool,
                "kind": pending.kind,
                "arguments_text": pending.arguments.as_str(),
                "fingerprint": pending.fingerprint,
                "payload_text": pending.payload.as_ref().map(Canonical::as_str),
                "expires_at": pending.expires_at.to_string(),
            }),
        ),
        RunEvent::ToolEnded {
            call,
            tool,
            state,
            outcome,
        } => (
            "tool_ended",
            json!({ "call": call, "tool": tool, "state": state, "outcome": outcome }),
        ),
        RunEvent::StepFinished { step, usage } => (
            "step_finished",
            json!({
                "step": step,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
            }),
        ),
        RunEvent::Suspended { pending } => ("suspended", json!({ "pending": pending })),
        RunEvent::Finished { text, reason } => {
            let reason = reason.as_str();
            ("finished", json!({ "text": text, "reason": reason }))
        }
        RunEvent::Failed { error } => ("interrupted", json!({ "detail": error })),
    }
}
