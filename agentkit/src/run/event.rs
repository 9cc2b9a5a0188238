use crate::{
    approval::PendingCall,
    call::{CallId, CallState, Canonical, RunId},
    model::Usage,
};

/// What happens in a run while it is worked on. Texts and arguments come as deltas.
#[derive(Clone, Debug)]
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
        arguments: Option<Canonical>,
    },
    /// A call waits for people: an approval, a question, or doubt to be settled.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model had nothing more to do.
    Answered,
    /// The model has answered as often as the run allows.
    StepLimit,
    /// The run was cancelled.
    Cancelled,
}
