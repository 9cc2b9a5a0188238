use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::RequestContext;

use super::{Defaults, OutputSchema};
use crate::{
    call::Principal,
    gate::{RequireApproval, StoredDemand},
    memory::{Thread, ThreadOptions},
};

/// What a run is started with.
#[derive(Clone, Debug)]
#[must_use]
pub struct Input {
    pub(crate) requester: Principal,
    pub(crate) text: String,
    pub(crate) thread: Option<Thread>,
    /// Where the run says it itself.
    max_steps: Option<u32>,
    pub(crate) options: RunOptions,
}

impl Input {
    /// A message from `requester`, on whose behalf the agent will act. The requester comes from
    /// the application's authentication.
    pub fn new(requester: Principal, text: impl Into<String>) -> Self {
        Self {
            requester,
            text: text.into(),
            thread: None,
            max_steps: None,
            options: RunOptions::default(),
        }
    }

    /// Whether the run asks for approval of its calls, whatever tools and policy say. What the
    /// agent declares for all its runs holds as well.
    pub fn require_approval(mut self, option: RequireApproval) -> Self {
        self.options.require_approval = option;
        self
    }

    /// Puts the run on a thread: the model is shown what was said there before.
    pub fn thread(mut self, thread: Thread) -> Self {
        self.thread = Some(thread);
        self
    }

    /// Gives the run something along, for its tools ([`RunContext`](crate::tool::RunContext)) and
    /// its predicate. It is not stored: gone once another process continues the run.
    pub fn context(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options
            .context
            .passing
            .insert(name.into(), value.into());
        self
    }

    /// Gives the run something along that is stored with it and holds across every suspension.
    pub fn stored_context(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options
            .context
            .stored
            .insert(name.into(), value.into());
        self
    }

    /// How often the model may answer, over all suspensions.
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.max_steps = Some(steps);
        self
    }

    /// How many tokens the model may read and write, over all suspensions and in all sub-agents.
    /// The answer that goes beyond it is still used; nothing is asked after it.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.options.max_tokens = Some(tokens);
        self
    }

    /// For how long the run may be worked on, over all suspensions; the time in which it waits
    /// for people does not count. Tools that are executing then are asked to stop.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.options.max_time = Some(time);
        self
    }

    /// Fills in what the run does not say itself.
    pub(crate) fn defaults(&mut self, defaults: &Defaults) {
        let options = &mut self.options;
        if let Some(steps) = self.max_steps.or(defaults.max_steps) {
            options.max_steps = steps;
        }
        options.max_tokens = options.max_tokens.or(defaults.max_tokens);
        options.max_time = options.max_time.or(defaults.max_time);
    }

    /// The last answer must be a `T`.
    pub(crate) fn answering<T: JsonSchema>(mut self) -> Self {
        self.options.output = Some(OutputSchema::of::<T>());
        self
    }
}

/// Options of a run: they hold across every suspension, and for sub-agents.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOptions {
    /// Whether the run asks for approval of its calls.
    pub require_approval: RequireApproval,
    /// How often the model may answer; 32 unless said otherwise. Each sub-agent has as many.
    pub max_steps: u32,
    /// How many tokens the model may read and write, all sub-agents together.
    pub max_tokens: Option<u64>,
    /// For how long the run may be worked on.
    pub max_time: Option<Duration>,
    /// What the application gave along.
    pub(crate) context: RequestContext,
    /// The thread of the run.
    pub(crate) thread: Option<ThreadOptions>,
    /// The form that the last answer must have.
    pub(crate) output: Option<OutputSchema>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            require_approval: RequireApproval::Off,
            max_steps: 32,
            max_tokens: None,
            max_time: None,
            context: RequestContext::default(),
            thread: None,
            output: None,
        }
    }
}

/// What is stored of the options.
#[derive(Serialize, Deserialize)]
struct Stored {
    require_approval: StoredDemand,
    max_steps: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_time: Option<Duration>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    context: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<OutputSchema>,
}

impl RunOptions {
    /// The options under which a sub-agent works. The form of the answer is that of the agent
    /// above it: a task is answered in words.
    pub(crate) fn below(&self) -> Self {
        Self {
            output: None,
            ..self.clone()
        }
    }

    pub(crate) fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Stored {
            require_approval: self.require_approval.stored(),
            max_steps: self.max_steps,
            max_tokens: self.max_tokens,
            max_time: self.max_time,
            context: self.context.stored.clone(),
            thread: self.thread.clone(),
            output: self.output.clone(),
        })
    }

    pub(crate) fn from_stored(text: &str) -> Result<Self, serde_json::Error> {
        let stored: Stored = serde_json::from_str(text)?;
        Ok(Self {
            require_approval: stored.require_approval.restored(),
            max_steps: stored.max_steps,
            max_tokens: stored.max_tokens,
            max_time: stored.max_time,
            context: RequestContext {
                stored: stored.context,
                ..RequestContext::default()
            },
            thread: stored.thread,
            output: stored.output,
        })
    }
}
