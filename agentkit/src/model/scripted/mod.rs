//! A model that plays a script: for tests, and for programs that run without a provider.
//!
//! ```
//! use agentkit::model::scripted::{Reply, ScriptedModel};
//!
//! let model = ScriptedModel::new()
//!     .reply(Reply::text("One moment.").call("find_order", &serde_json::json!({"id": "o-1"})))
//!     .answering(|request| match request.last_results() {
//!         [found] => Reply::text(format!("This is your order: {}", found.content)),
//!         _ => Reply::text("I can look up orders."),
//!     });
//! ```
//!
//! Queued replies are played first, in their order; then the closure answers to what it is shown.
//! Every request is kept for [`ScriptedModel::requests`].

mod reply;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};

use super::{ChatModel, ModelError, ModelErrorKind, ModelName, ModelRequest, ModelStream};

pub use reply::Reply;

type Answer = Arc<dyn Fn(&ModelRequest) -> Reply + Send + Sync>;

/// A model that plays a script. Clones share script and recording.
#[derive(Clone)]
pub struct ScriptedModel {
    name: ModelName,
    answer: Option<Answer>,
    piece: usize,
    pause: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Reply>,
    requests: Vec<ModelRequest>,
    /// How many calls were made so far; provider ids are numbered by it.
    calls: u64,
}

impl ScriptedModel {
    /// A model without a script: every request fails until it has one.
    pub fn new() -> Self {
        Self {
            name: ModelName::scripted(),
            answer: None,
            piece: 12,
            pause: Duration::ZERO,
            state: Arc::default(),
        }
    }

    /// Adds a reply to the end of the queue.
    pub fn reply(self, reply: Reply) -> Self {
        self.queue(reply);
        self
    }

    /// Answers by a closure once the queue is empty.
    pub fn answering(
        mut self,
        answer: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        self.answer = Some(Arc::new(answer));
        self
    }

    /// Streams text and arguments in pieces of so many characters; 12 unless set, at least 1.
    pub fn pieces_of(mut self, characters: usize) -> Self {
        self.piece = characters.max(1);
        self
    }

    /// Waits so long before every event, so that a person can watch; not at all unless set.
    pub fn pausing(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Calls the model by another name.
    pub fn named(mut self, name: ModelName) -> Self {
        self.name = name;
        self
    }

    /// Adds a reply to the end of the queue of a model that is in use.
    pub fn queue(&self, reply: Reply) {
        self.state().queue.push_back(reply);
    }

    /// What the model was sent so far, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that change it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("ScriptedModel")
            .field("name", &self.name)
            .field("queued", &state.queue.len())
            .field("requests", &state.requests.len())
            .finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl ChatModel for ScriptedModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let (queued, number) = {
            let mut state = self.state();
            state.requests.push(request.clone());
            (state.queue.pop_front(), state.requests.len())
        };
        // The closure runs without the lock, so that it may look at the model.
        let reply = match (queued, &self.answer) {
            (Some(reply), _) => reply,
            (None, Some(answer)) => answer(request),
            (None, None) => {
                return Err(ModelError::new(
                    ModelErrorKind::InvalidRequest,
                    format!(
                        "the script has no reply to request {number}: queue one with `reply`, or \
                         answer with `answering`"
                    ),
                ));
            }
        };
        let first_call = {
            let mut state = self.state();
            let first = state.calls + 1;
            state.calls += reply.call_count();
            first
        };
        let items = reply.play(self.piece, first_call)?;
        let pause = self.pause;
        if pause.is_zero() {
            return Ok(stream::iter(items).boxed());
        }
        let paced = stream::iter(items).then(move |item| async move {
            tokio::time::sleep(pause).await;
            item
        });
        Ok(paced.boxed())
    }
}

#[cfg(test)]
mod tests;
