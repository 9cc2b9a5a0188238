#![allow(unused_qualifications, reason = "in the expansion of utoipa")]

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    super::{
        Problem,
        extract::{Path, Query, Who},
        state::Server,
        view::{SaidView, time},
    },
    pending::page_size,
};
use crate::{
    call::{CallState, Canonical},
    memory::Thread,
    model::Message,
    store::{Part, StoreError},
};

/// The conversation that a run belongs to. Its owner is the caller.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct On {
    /// The thread's id, of the application's making. It is made by the first run on it.
    #[schema(min_length = 1, max_length = 128)]
    id: String,
    /// How many messages of earlier runs the model is shown at most: 40 unless said otherwise.
    #[serde(default)]
    #[schema(maximum = 1000)]
    window: Option<u32>,
    /// The run reads the thread and does not become a part of it.
    #[serde(default)]
    read_only: bool,
    /// The message may answer an open question of an earlier run on the thread, which goes on
    /// then.
    #[serde(default)]
    answers_questions: bool,
}

impl From<On> for Thread {
    fn from(on: On) -> Self {
        let mut thread = Self::new(on.id);
        if let Some(window) = on.window {
            thread = thread.window(window.min(1000));
        }
        if on.read_only {
            thread = thread.read_only();
        }
        if on.answers_questions {
            thread = thread.answers_questions();
        }
        thread
    }
}

/// Which part of a thread is read.
#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Runs before this place in the thread only.
    before: Option<i64>,
    /// How many runs, from 1 to 200; 50 unless said otherwise.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// The last runs of a thread, or those before a place in it; oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct ThreadPage {
    runs: Vec<ThreadRunView>,
    /// Pass it as `before` for the runs before these; absent where there are none.
    before: Option<i64>,
}

/// One run of a thread: a message of the user, and what came of it.
#[derive(Serialize, ToSchema)]
pub(super) struct ThreadRunView {
    run: String,
    agent: String,
    /// `running`, `suspended`, `interrupted`, `finished` or `cancelled`.
    status: String,
    #[schema(format = "date-time")]
    created_at: String,
    messages: Vec<SaidView>,
    calls: Vec<ThreadCallView>,
}

/// A call of a run of a thread.
#[derive(Serialize, ToSchema)]
pub(super) struct ThreadCallView {
    call: String,
    tool: String,
    #[schema(value_type = String)]
    state: CallState,
    /// The effective arguments, as canonical text.
    arguments_text: Option<String>,
    /// What the model was told, once the call is over.
    outcome: Option<String>,
}

/// Reads a thread, for whom it belongs to.
#[utoipa::path(get, path = "/v1/threads/{thread}", tag = "runs", operation_id = "read_thread",
    params(("thread" = String, Path, description = "The thread"), Filter),
    responses(
        (status = 200, body = ThreadPage),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn read(
    State(server): State<Server>,
    Who(who): Who,
    Path(thread): Path<String>,
    Query(query): Query<Filter>,
) -> Result<Json<ThreadPage>, Problem> {
    let size = page_size(query.limit)?;
    let tenant = who.tenant.as_deref();
    let last = server.store.thread_position(tenant, &thread, &who.id).await;
    let last = match last {
        Ok(Some(last)) => last,
        Ok(None) | Err(StoreError::ForeignThread { .. }) => return Err(Problem::unknown("thread")),
        Err(error) => return Err(error.into()),
    };
    let before = query.before.unwrap_or(last.saturating_add(1));
    let most = u64::try_from(size).unwrap_or(50);
    let parts = server.store.thread(tenant, &thread, before, most).await?;
    let first = parts.first().and_then(|part| part.run.thread_position);
    Ok(Json(ThreadPage {
        // Places are given out from 1 on, without a gap.
        before: first.filter(|first| *first > 1),
        runs: parts.iter().map(ThreadRunView::of).collect(),
    }))
}

impl ThreadRunView {
    fn of(part: &Part) -> Self {
        let said = part.messages.iter().filter_map(|stored| {
            // A message of a form that this version does not know is not shown.
            let message = serde_json::from_str(&stored.body).ok()?;
            SaidView::of(message)
        });
        let calls = part.calls.iter().map(|call| ThreadCallView {
            call: call.id.to_string(),
            tool: call.tool.clone(),
            state: call.state,
            arguments_text: call.arguments.as_ref().map(Canonical::to_string),
            outcome: call.outcome.clone(),
        });
        Self {
            run: part.run.id.to_string(),
            agent: part.run.agent.clone(),
            status: part.run.status.to_string(),
            created_at: time(part.run.created_at),
            messages: said.collect(),
            calls: calls.collect(),
        }
    }
}

impl SaidView {
    /// A message in words; none where nothing was said to anyone, as in the results of calls.
    pub(super) fn of(message: Message) -> Option<Self> {
        match message {
            Message::User(message) => Some(Self {
                who: "user",
                text: message.text,
            }),
            Message::Assistant(message) if !message.text.is_empty() => Some(Self {
                who: "model",
                text: message.text,
            }),
            _ => None,
        }
    }
}
