use serde::{Deserialize, Serialize};

/// One piece of a turn, as the model produces it.
///
/// Deltas are true deltas: the text of a call's arguments is the concatenation of its `json`
/// pieces, whatever the provider's protocol repeats. Calls are told apart by `index`, their place
/// in the turn; the pieces of parallel calls may interleave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// More of the answer's text.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning, where the provider shows it. Not part of the answer.
    ReasoningDelta {
        /// The piece.
        text: String,
    },
    /// A tool call begins.
    ToolCallStarted {
        /// The call's place in the turn, from 0.
        index: u32,
        /// The provider's id of the call.
        provider_id: String,
        /// The tool's name.
        tool: String,
    },
    /// More of a call's arguments.
    ToolCallDelta {
        /// The call's place in the turn.
        index: u32,
        /// The piece of JSON text.
        json: String,
    },
    /// A call's arguments are complete.
    ToolCallFinished {
        /// The call's place in the turn.
        index: u32,
    },
    /// What the turn has cost so far; replaces what was told before.
    Usage(Usage),
    /// The turn is whole. Nothing follows.
    Ended {
        /// Why the model stopped.
        stop: StopReason,
    },
}

/// Tokens read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, those from the provider's cache included.
    pub input_tokens: u64,
    /// Those of the read tokens that came from the provider's cache.
    pub cached_input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Those of the written tokens that were reasoning.
    pub reasoning_tokens: u64,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It had nothing more to say.
    EndTurn,
    /// It waits for the results of its tool calls.
    ToolCalls,
    /// It reached the limit of tokens; the last call's arguments may be cut off.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// It, or a filter of the provider, refused.
    Refused,
    /// A reason that is not known here, as the provider wrote it.
    Other(String),
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_input_tokens: self
                .cached_input_tokens
                .saturating_add(other.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
        }
    }
}
