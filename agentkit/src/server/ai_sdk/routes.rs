use std::{collections::BTreeSet, convert::Infallible, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, request::Parts},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{MethodRouter, get, post},
};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{
    chunks::Chunks,
    history,
    request::{Answer, Body, Did, Said},
};
use crate::{
    approval::{Decision, Verdict},
    call::{CallId, Principal},
    memory::Thread,
    run::{Input, RunEvent, Runtime},
    server::{
        Problem,
        api::decide_seen,
        extract::{self, Path, Who},
        following::Followed,
        sight::Sight,
        state::Server,
    },
    store::{RunRecord, RunStatus, StoreError},
};

pub(in crate::server) fn routes() -> Vec<(&'static str, MethodRouter<Server>)> {
    vec![
        ("/ai-sdk/{agent}", post(chat)),
        ("/ai-sdk/{agent}/{chat}/stream", get(reconnect)),
        ("/ai-sdk/{agent}/{chat}/messages", get(messages)),
    ]
}

/// What the user of a chat did: said something, or answered what waits.
async fn chat(
    State(server): State<Server>,
    Who(who): Who,
    Path(agent): Path<String>,
    parts: Parts,
    extract::Json(body): extract::Json<Body>,
) -> Result<Response, Problem> {
    let runtime = Arc::clone(server.agent(&agent)?);
    match body.did()? {
        Did::Say(text) => {
            let open = server.open_stream(&who)?;
            let input = Input::new(who, text).thread(Thread::new(body.id));
            let running = runtime.start(input).await?;
            server.metrics.runs.inc();
            let chunks = Chunks::of(running.run().clone());
            let events = Followed::work(server, running, open);
            Ok(stream_of(chunks, Vec::new(), Some(events)))
        }
        Did::Answer(answers) => answer(&server, who, parts, &runtime, &body.id, answers).await,
    }
}

/// Records the answers to what waits in a run of a chat, and shows what comes of them. An answer
/// that does not count is told, and what it was about is put again.
async fn answer(
    server: &Server,
    who: Principal,
    parts: Parts,
    runtime: &Runtime,
    chat: &str,
    answers: Vec<Answer>,
) -> Result<Response, Problem> {
    let sight = Sight::of(server, &who).await?;
    let mut found = Vec::new();
    for answer in answers {
        let run = server.store.run_of(&answer.call).await?;
        let run = run.ok_or_else(|| Problem::unknown("call"))?;
        let root = sight.own_run(&run.root).await?;
        if root.thread.as_deref() != Some(chat) || root.agent != runtime.agent {
            return Err(Problem::unknown("call"));
        }
        let seen = sight.call(&run.id, &answer.call).await?;
        found.push((root, seen, answer));
    }
    let root = found.first().map(|(root, ..)| root.clone());
    let root = root.ok_or_else(|| Problem::malformed("nothing is answered"))?;
    if found.iter().any(|(other, ..)| other.id != root.id) {
        return Err(Problem::malformed(
            "one message answers calls of several runs",
        ));
    }
    let shown = shown_until(server, &root, found.iter().map(|(.., answer)| answer)).await?;
    let mut chunks = Chunks::of(root.id.clone());
    let mut told = Vec::new();
    for (_, seen, answer) in found {
        // A question that was answered stays in the message, with what came of it.
        let is_question = matches!(answer.said, Said::Data(_));
        if is_question && !seen.call.call.state.needs_person() {
            continue;
        }
        let decision = Decision {
            run: seen.call.run.id.clone(),
            call: answer.call.clone(),
            fingerprint: answer.fingerprint,
            verdict: match answer.said {
                Said::Approve => Verdict::Approve,
                Said::Decline(reason) => Verdict::Decline { reason },
                Said::Data(data) => Verdict::Answer { data },
            },
        };
        let Err(problem) = decide_seen(server, &who, &seen, decision).await else {
            continue;
        };
        if problem.status().is_server_error() {
            return Err(problem);
        }
        told.push(json!({
            "type": "data-refused", "id": answer.call,
            "data": { "call": answer.call, "problem": problem },
        }));
        let now = sight.call(&seen.call.run.id, &answer.call).await?;
        if let Some(pending) = now.call.pending() {
            told.extend(chunks.ask_again(&pending));
        }
    }
    let events = Followed::attached(server, who, parts, &root, shown).await?;
    Ok(stream_of(chunks, told, events))
}

/// Up to which event the client was shown the run when it answered: to the end of the stream in
/// which it was asked. Between that and the model's next words only calls end, and telling of that
/// again changes nothing.
async fn shown_until<'a>(
    server: &Server,
    root: &RunRecord,
    answers: impl Iterator<Item = &'a Answer>,
) -> Result<i64, Problem> {
    let asked: BTreeSet<&CallId> = answers.map(|answer| &answer.call).collect();
    let (mut last, mut until, mut waiting) = (0, 0, false);
    loop {
        let page = server.store.events(&root.id, last, 500).await?;
        let Some(end) = page.last() else {
            return Ok(until);
        };
        last = end.sequence;
        for stored in &page {
            let event: RunEvent = serde_json::from_str(&stored.body)
                .map_err(|error| StoreError::corrupt("event", root.id.as_str(), error))?;
            match event {
                RunEvent::Pending(pending) if asked.contains(&pending.call) => waiting = true,
                RunEvent::Suspended { .. } if waiting => {
                    until = stored.sequence;
                    waiting = false;
                }
                _ => {}
            }
        }
    }
}

/// The message that the chat's last run makes up, as long as that run is not over: for a client
/// that was cut off, reloaded, or wants to know what others decided.
async fn reconnect(
    State(server): State<Server>,
    Who(who): Who,
    Path((agent, chat)): Path<(String, String)>,
    parts: Parts,
) -> Result<Response, Problem> {
    let runtime = server.agent(&agent)?;
    let last = history::runs(&server, &who, &chat, 1).await?.pop();
    let open = last.map(|part| part.run).filter(|run| {
        run.agent == runtime.agent
            && matches!(run.status, RunStatus::Running | RunStatus::Suspended)
    });
    let Some(run) = open else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    Sight::of(&server, &who).await?.own_run(&run.id).await?;
    let events = Followed::attached(&server, who, parts, &run, 0).await?;
    Ok(stream_of(Chunks::of(run.id), Vec::new(), events))
}

/// The messages of a chat, for a client that does not keep them. One that is not complete yet is
/// what `stream` shows.
async fn messages(
    State(server): State<Server>,
    Who(who): Who,
    Path((agent, chat)): Path<(String, String)>,
) -> Result<Json<Vec<Value>>, Problem> {
    let runtime = server.agent(&agent)?;
    let parts = history::runs(&server, &who, &chat, history::LONGEST).await?;
    let own = parts.iter().filter(|part| part.run.agent == runtime.agent);
    Ok(Json(own.flat_map(history::messages).collect()))
}

/// What a stream of chunks is made from.
struct Source {
    events: Option<Followed>,
    chunks: Chunks,
    ended: bool,
}

impl Source {
    /// The chunks of the next event; at the end, once, what the client must hear at last.
    async fn next(mut self) -> Option<(Vec<Value>, Self)> {
        let event = match &mut self.events {
            Some(events) => events.next().await,
            None => None,
        };
        match event {
            Some(next) => {
                let chunks = self.chunks.told(&next.event);
                Some((chunks, self))
            }
            None if self.ended => None,
            None => {
                self.ended = true;
                let chunks = self.chunks.end();
                Some((chunks, self))
            }
        }
    }
}

fn stream_of(chunks: Chunks, told: Vec<Value>, events: Option<Followed>) -> Response {
    let mut first = vec![chunks.start()];
    first.extend(told);
    let source = Source {
        events,
        chunks,
        ended: false,
    };
    let chunks = stream::iter([first])
        .chain(stream::unfold(source, Source::next))
        .flat_map(stream::iter)
        .map(|chunk| Event::default().data(chunk.to_string()))
        .chain(stream::iter([Event::default().data("[DONE]")]))
        .map(Ok::<_, Infallible>);
    let mut response = Sse::new(chunks)
        .keep_alive(KeepAlive::new())
        .into_response();
    response.headers_mut().insert(
        HeaderName::from_static("x-vercel-ai-ui-message-stream"),
        HeaderValue::from_static("v1"),
    );
    response
}
