use serde::{Deserialize, Serialize};

use crate::{
    approval::PendingCall,
    call::{CallId, CallState, Canonical, RunId},
    model::Usage,
};

/// What happens in a run while it is worked on. Texts and arguments come as deltas, and each event
/// is kept, so that what is written and sent is linear in what happens.
///
/// The last event of a piece of work is [`Suspended`](Self::Suspended),
/// [`Finished`](Self::Finished) or [`Failed`](Self::Failed).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// The model is asked.
    StepStarted {
        /// The step, from 1.
        step: u32,
    },
    /// More of the model's text.
    TextDelta {
        /// What is added.
        text: String,
    },
    /// More of the model's reasoning, where the provider shows it.
    ReasoningDelta {
        /// What is added.
        text: String,
    },
    /// The model begins to write a tool call.
    ToolInputStarted {
        /// Which of the turn's calls.
        index: u32,
        /// The tool's name.
        tool: String,
    },
    /// More of a tool call's arguments, raw.
    ToolInputDelta {
        /// Which of the turn's calls.
        index: u32,
        /// What is added.
        json: String,
    },
    /// A call is a durable row now, with its effective arguments.
    ToolCall {
        /// Our id of the call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// The effective arguments; absent where the model's could not be decoded.
        #[serde(with = "crate::approval::canonical::optional")]
        arguments: Option<Canonical>,
    },
    /// Something happened in the run that a call was handed to.
    Delegated {
        /// The call.
        call: CallId,
        /// The agent that it was handed to.
        agent: String,
        /// What happened there.
        event: Box<RunEvent>,
    },
    /// A call waits for people, in the run or below it: an approval, a question, or doubt to be
    /// settled.
    Pending(Box<PendingCall>),
    /// A call has its outcome.
    ToolEnded {
        /// Our id of the call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// How it ended.
        state: CallState,
        /// What the model is told.
        outcome: String,
    },
    /// The run waits for people. Each call was told of when it began to wait.
    Suspended {
        /// The calls that wait, in the run and below it.
        pending: Vec<CallId>,
    },
    /// The run is over.
    Finished {
        /// The model's last text, which came as deltas before.
        text: String,
        /// Why it is over.
        reason: FinishReason,
    },
    /// The work was cut short; the run can be resumed.
    Failed {
        /// What went wrong.
        error: String,
    },
    /// The model's answer is durable.
    StepFinished {
        /// The step.
        step: u32,
        /// What it used.
        usage: Usage,
    },
}

/// How working on a run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ending {
    /// The run is over.
    Finished {
        /// The run.
        run: RunId,
        /// The model's last text.
        text: String,
        /// Why it is over.
        reason: FinishReason,
    },
    /// The run waits for people.
    Suspended {
        /// The run.
        run: RunId,
        /// What waits.
        pending: Vec<PendingCall>,
    },
}

/// Why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model had nothing more to do.
    Answered,
    /// The model has answered as often as the run allows.
    StepLimit,
    /// The model has read and written as many tokens as the run allows.
    TokenLimit,
    /// The run was worked on for as long as it allows.
    TimeLimit,
    /// The run was cancelled.
    Cancelled,
}

impl FinishReason {
    /// The name under which the reason is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::StepLimit => "step_limit",
            Self::TokenLimit => "token_limit",
            Self::TimeLimit => "time_limit",
            Self::Cancelled => "cancelled",
        }
    }

    /// The reason of this name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        [
            Self::Answered,
            Self::StepLimit,
            Self::TokenLimit,
            Self::TimeLimit,
            Self::Cancelled,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == name)
    }
}
