use std::{
    any::{Any, TypeId, type_name},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Cancellation, Contexts, ToolError,
    label::{TakenLabels, check_label},
};
use crate::call::{CallId, Canonical, Principal, RunId};

/// What a tool may know about the call that it serves. Every tool can ask for it with
/// `#[ctx] run: &RunContext`.
#[derive(Clone)]
#[non_exhaustive]
pub struct RunContext {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// Stays the same however often this call is executed; to be handed on to services that
    /// take one, so that a repeated call has no second effect.
    pub idempotency_key: String,
    /// On whose behalf the run works.
    pub requester: Principal,
    /// What the application gave the run along: all of it in the process that started the run,
    /// what was marked as to be stored in any other.
    pub request: BTreeMap<String, Value>,
    /// The question that the tool asked last in this call, where it asked one. A tool that asks
    /// several times is given the last answer only: what it learnt before, it puts into its
    /// question.
    pub asked: Option<Canonical>,
    /// Tells the tool that nobody waits for its result any more.
    pub cancellation: Cancellation,
    pub(crate) labels: TakenLabels,
}

impl RunContext {
    /// The context of one call.
    pub fn new(
        run: RunId,
        call: CallId,
        idempotency_key: impl Into<String>,
        requester: Principal,
        cancellation: Cancellation,
    ) -> Self {
        Self {
            run,
            call,
            idempotency_key: idempotency_key.into(),
            requester,
            request: BTreeMap::new(),
            asked: None,
            cancellation,
            labels: TakenLabels::default(),
        }
    }

    /// Has the session take on a label that follows from what the call found, such as `secret`
    /// where it read one. It is recorded with the call's outcome, whatever that is, and never
    /// removed; policies read it in `context.session.labels`.
    ///
    /// A call whose process is killed has no outcome, and leaves nothing but the labels that its
    /// tool declares.
    ///
    /// # Errors
    ///
    /// When it is empty, longer than 128 characters, has blanks around it or control characters in
    /// it. Hand the error on: what is not labelled is not forbidden.
    pub fn label(&self, label: impl Into<String>) -> Result<(), ToolError> {
        let label = label.into();
        check_label(&label)
            .map_err(|rule| ToolError::new(format!("the label {label:?} is refused: {rule}")))?;
        self.labels.add(label);
        Ok(())
    }

    /// Sets the question that the tool asked last.
    pub fn with_asked(mut self, question: Option<Canonical>) -> Self {
        self.asked = question;
        self
    }

    /// The question that the tool asked last, as it asked it.
    ///
    /// # Errors
    ///
    /// When it is not an `S`: the type must have changed since.
    pub fn asked<S: DeserializeOwned>(&self) -> Result<Option<S>, ToolError> {
        self.asked
            .as_ref()
            .map(Canonical::decode)
            .transpose()
            .map_err(|error| {
                ToolError::with_source(
                    "the recorded question does not fit the tool any more",
                    error,
                )
            })
    }

    /// Sets what the application gave the run along.
    pub fn with_request(mut self, request: BTreeMap<String, Value>) -> Self {
        self.request = request;
        self
    }
}

impl fmt::Debug for RunContext {
    /// Without what the application gave along, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("run", &self.run)
            .field("call", &self.call)
            .field("requester", &self.requester)
            .field("request", &self.request.keys())
            .field("cancellation", &self.cancellation)
            .finish_non_exhaustive()
    }
}

/// Everything that a tool is given besides its arguments: the run, the application's contexts,
/// and the answer if it asked a question before.
#[derive(Clone, Debug)]
pub struct ToolContext {
    run: Arc<RunContext>,
    contexts: Arc<Contexts>,
    resume: Option<Canonical>,
}

impl ToolContext {
    /// The context of one call. `resume` is the answer to the question that the tool suspended
    /// with.
    pub fn new(run: RunContext, contexts: Arc<Contexts>, resume: Option<Canonical>) -> Self {
        Self {
            run: Arc::new(run),
            contexts,
            resume,
        }
    }

    /// The run and the call.
    pub fn run(&self) -> &RunContext {
        &self.run
    }

    /// The application's context of type `C`. [`RunContext`] is always there.
    ///
    /// # Errors
    ///
    /// When there is none. An agent checks the contexts of its tools when it is built, so this
    /// happens only to tools that are called without one.
    pub fn context<C: Any + Send + Sync>(&self) -> Result<Arc<C>, ToolError> {
        if TypeId::of::<C>() == TypeId::of::<RunContext>() {
            let run: Arc<dyn Any + Send + Sync> = Arc::clone(&self.run) as _;
            if let Ok(run) = run.downcast() {
                return Ok(run);
            }
        }
        self.contexts.get().ok_or_else(|| {
            ToolError::new(format!(
                "the tool needs a context of type `{}` and there is none; add it with `ctx` where \
                 the agent is built",
                type_name::<C>()
            ))
        })
    }

    /// The answer to the tool's question, if it was asked and answered.
    ///
    /// # Errors
    ///
    /// When the answer is not an `R`. Answers are checked before they are stored, so the type
    /// must have changed since.
    pub fn resume<R: DeserializeOwned>(&self) -> Result<Option<R>, ToolError> {
        self.resume
            .as_ref()
            .map(Canonical::decode)
            .transpose()
            .map_err(|error| {
                ToolError::with_source("the recorded answer does not fit the tool any more", error)
            })
    }
}
