use serde::{Deserialize, Serialize};

use crate::call::{CallId, CallState, Canonical, Fingerprint, RunId, Timestamp};

/// What a person decides about one call. It carries no identity: that comes from the
/// application's authentication, beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use = "a decision changes nothing until it is handed to the agent"]
pub struct Decision {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The fingerprint that the person saw.
    pub fingerprint: Fingerprint,
    /// What is decided.
    pub verdict: Verdict,
}

/// The content of a [`Decision`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run, with exactly the arguments of the fingerprint.
    Approve,
    /// The call must not run. The model receives the reason.
    Decline {
        /// Why; a blank reason is none.
        reason: Option<String>,
    },
    /// The call is to run with these arguments instead: they are decoded, gated and
    /// fingerprinted anew.
    Amend {
        /// All arguments, as a full replacement.
        #[serde(with = "super::canonical")]
        arguments: Canonical,
        /// Why; a blank reason is none.
        reason: Option<String>,
    },
    /// The answer to the tool's question.
    Answer {
        /// Checked against the tool's `Resume` type before anything changes.
        #[serde(with = "super::canonical")]
        data: Canonical,
    },
    /// The call is withdrawn.
    Cancel,
    /// What really happened to a call that is in doubt.
    Settle(Settlement),
}

/// What a person found out about a call whose instance died.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "happened", rename_all = "snake_case")]
pub enum Settlement {
    /// It took effect, with this result for the model.
    Succeeded {
        /// The result in words.
        result: String,
    },
    /// It did not take effect.
    Failed {
        /// What the model is told.
        message: String,
    },
    /// It did not take effect and is to run now, under the same idempotency key.
    Retry,
}

/// The kind of a verdict, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// [`Verdict::Approve`].
    Approve,
    /// [`Verdict::Decline`].
    Decline,
    /// [`Verdict::Amend`].
    Amend,
    /// [`Verdict::Answer`].
    Answer,
    /// [`Verdict::Cancel`].
    Cancel,
    /// [`Verdict::Settle`].
    Settle,
}

impl DecisionKind {
    /// The name under which the kind is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Decline => "decline",
            Self::Amend => "amend",
            Self::Answer => "answer",
            Self::Cancel => "cancel",
            Self::Settle => "settle",
        }
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::Approve,
            Self::Decline,
            Self::Amend,
            Self::Answer,
            Self::Cancel,
            Self::Settle,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == name)
    }
}

impl std::fmt::Display for DecisionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Verdict {
    /// The kind of this verdict.
    pub const fn kind(&self) -> DecisionKind {
        match self {
            Self::Approve => DecisionKind::Approve,
            Self::Decline { .. } => DecisionKind::Decline,
            Self::Amend { .. } => DecisionKind::Amend,
            Self::Answer { .. } => DecisionKind::Answer,
            Self::Cancel => DecisionKind::Cancel,
            Self::Settle(_) => DecisionKind::Settle,
        }
    }

    /// The reason that was given, if it says anything.
    pub fn reason(&self) -> Option<&str> {
        let reason = match self {
            Self::Decline { reason } | Self::Amend { reason, .. } => reason.as_deref(),
            _ => None,
        };
        reason.map(str::trim).filter(|reason| !reason.is_empty())
    }

    /// The content that tells two verdicts of one kind apart, as it is stored.
    pub fn content(&self) -> Option<String> {
        match self {
            Self::Amend { arguments, .. } => Some(arguments.to_string()),
            Self::Answer { data } => Some(data.to_string()),
            Self::Settle(settlement) => serde_json::to_string(settlement).ok(),
            Self::Approve | Self::Decline { .. } | Self::Cancel => None,
        }
    }
}

/// A decision as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedDecision {
    /// What was decided.
    pub kind: DecisionKind,
    /// By whom: the approver's id.
    pub approver: String,
    /// When, on the database's clock.
    pub at: Timestamp,
    /// Why, where a reason was given.
    pub reason: Option<String>,
    /// The fingerprint that the approver saw.
    pub fingerprint: Fingerprint,
    /// The amendment, answer or settlement.
    pub content: Option<String>,
}

impl RecordedDecision {
    /// A decision that was read from the store.
    pub const fn new(
        kind: DecisionKind,
        approver: String,
        at: Timestamp,
        fingerprint: Fingerprint,
        reason: Option<String>,
        content: Option<String>,
    ) -> Self {
        Self {
            kind,
            approver,
            at,
            reason,
            fingerprint,
            content,
        }
    }

    /// Whether `verdict` says the same again.
    pub fn says_the_same_as(&self, verdict: &Verdict) -> bool {
        self.kind == verdict.kind() && self.content == verdict.content()
    }
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decided {
    /// The state of the call now.
    pub state: CallState,
    /// The decision as it is recorded.
    pub decision: RecordedDecision,
    /// Whether it had been recorded before and this was a repetition.
    pub repeated: bool,
    /// How many more people must approve.
    pub still_needed: u32,
}

impl Decided {
    /// The answer to a decision.
    pub const fn new(
        state: CallState,
        decision: RecordedDecision,
        repeated: bool,
        still_needed: u32,
    ) -> Self {
        Self {
            state,
            decision,
            repeated,
            still_needed,
        }
    }
}
