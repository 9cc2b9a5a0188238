use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    approval::Reason,
    call::{
        ActionDigest, CallId, CallState, Canonical, Digest, Fingerprint, Nonce, Principal, RunId,
        RunSecret, Timestamp,
    },
};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// An instance works on it, or did when it died.
    Running,
    /// It waits for people.
    Suspended,
    /// The model failed; the run can be resumed.
    Interrupted,
    /// It ended with an answer.
    Finished,
    /// It was cancelled.
    Cancelled,
}

impl RunStatus {
    const ALL: [Self; 5] = [
        Self::Running,
        Self::Suspended,
        Self::Interrupted,
        Self::Finished,
        Self::Cancelled,
    ];

    /// The name under which the status is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Interrupted => "interrupted",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more happens in the run.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a status of a run")]
pub struct UnknownStatus(String);

impl FromStr for RunStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownStatus(text.chars().take(64).collect()))
    }
}

/// One run, as it is stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// The run at the top of the delegation; itself where nobody delegated it.
    pub root: RunId,
    /// The call of another agent that was handed to this run.
    pub parent: Option<ParentCall>,
    /// The names of the agents from the root's to this run's.
    pub path: Vec<String>,
    /// The agent's name.
    pub agent: String,
    /// Digest of the agent's definition when the run started.
    pub definition: Digest,
    /// How it stands.
    pub status: RunStatus,
    /// Why it is over, where it is.
    pub ending: Option<String>,
    /// Whether it was decided about since it was put down, and nobody has gone on with it yet.
    pub woken: bool,
    /// Since when it is to be cancelled.
    pub cancelled: Option<Timestamp>,
    /// The thread that it belongs to.
    pub thread: Option<String>,
    /// Its place in the thread; none where it only reads the thread.
    pub thread_position: Option<i64>,
    /// On whose behalf it acts.
    pub requester: Principal,
    /// Its secret.
    pub secret: RunSecret,
    /// The options it was started with, as JSON.
    pub options: String,
    /// How many times the model has answered.
    pub step: u32,
    /// Tokens that the model has read and written in it.
    pub tokens: u64,
    /// For how long it has been worked on, without what its present holder has not reported yet.
    pub worked: std::time::Duration,
    /// Why it is interrupted.
    pub error: Option<String>,
    /// When it was started.
    pub created_at: Timestamp,
}

/// The call that was handed to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParentCall {
    /// The run that made the call.
    pub run: RunId,
    /// The call.
    pub call: CallId,
}

impl ParentCall {
    /// The call `call` of `run`.
    pub const fn new(run: RunId, call: CallId) -> Self {
        Self { run, call }
    }
}

/// The right to work on a run. Every write of its holder is conditional on the epoch, so that a
/// holder that was only asleep writes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The instance.
    pub owner: String,
    /// The fencing epoch.
    pub epoch: i64,
}

impl Lease {
    pub(super) const fn new(run: RunId, owner: String, epoch: i64) -> Self {
        Self { run, owner, epoch }
    }
}

/// One message of a run, as it is stored: written once, never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredMessage {
    /// Its place in the run.
    pub sequence: u32,
    /// The step that it belongs to.
    pub step: u32,
    /// The message as JSON.
    pub body: String,
}

/// Why the gate decided as it did: what an approver is shown and what release checks again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GateRecord {
    /// Why people are asked.
    pub reasons: Vec<Reason>,
    /// The ids of the policies that determined it.
    pub policies: Vec<String>,
    /// The policy version that was in force.
    pub policy: Option<Digest>,
    /// How many approvals the declaration or the run demanded, apart from the policy; 0 for none.
    pub demanded: u32,
    /// The occasion on which people approved it, once it was released under that approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovedOccasion>,
    /// Who amended the arguments last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amended_by: Option<String>,
    /// The action for which the model asked, where a person amended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<ActionDigest>,
}

/// An occasion on which people approved a call: it counts for the call's later starts too (after
/// an answer, or after doubt), as long as the policy still says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedOccasion {
    /// The nonce of the occasion.
    pub nonce: Nonce,
    /// When people were asked.
    pub requested_at: Timestamp,
}

impl GateRecord {
    /// A record of a decision of the gate.
    pub const fn new(
        reasons: Vec<Reason>,
        policies: Vec<String>,
        policy: Option<Digest>,
        demanded: u32,
    ) -> Self {
        Self {
            reasons,
            policies,
            policy,
            demanded,
            approved: None,
            amended_by: None,
            proposed: None,
        }
    }
}

/// One call, as it is stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallRecord {
    /// Its id.
    pub id: CallId,
    /// Its run.
    pub run: RunId,
    /// The step in which the model asked for it.
    pub step: u32,
    /// Its place among the calls of the step.
    pub position: u32,
    /// The provider's id for it, which need not be unique.
    pub provider_id: String,
    /// The tool.
    pub tool: String,
    /// Where it stands.
    pub state: CallState,
    /// Raised by every change.
    pub version: i64,
    /// The effective arguments; absent where the model's could not be decoded.
    pub arguments: Option<Canonical>,
    /// Digest of the agent's definition when it was gated.
    pub definition: Digest,
    /// Digest of the tool's input schema when it was gated.
    pub input_schema: Option<Digest>,
    /// Digest of the policy slice when it was gated.
    pub policy_slice: Option<Digest>,
    /// Tells equal actions of the run.
    pub action: Option<ActionDigest>,
    /// The nonce of the present occasion on which people are asked.
    pub nonce: Option<Nonce>,
    /// The fingerprint of that occasion.
    pub fingerprint: Option<Fingerprint>,
    /// Why the gate decided as it did.
    pub gate: GateRecord,
    /// How many people must approve.
    pub quorum: u32,
    /// Since when it waits for people.
    pub requested_at: Option<Timestamp>,
    /// Until when people can decide.
    pub expires_at: Option<Timestamp>,
    /// What the tool asks.
    pub payload: Option<Canonical>,
    /// The answer.
    pub answer: Option<Canonical>,
    /// What the model is told.
    pub outcome: Option<String>,
    /// The lease epoch under which it was started last.
    pub epoch: Option<i64>,
    /// Whether it was ended by somebody who does not work on the run, and the run's listeners
    /// were not told yet.
    pub untold: bool,
}
