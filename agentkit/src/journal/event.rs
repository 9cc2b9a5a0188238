use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::call::{ActionDigest, CallId, CallState, Digest, Fingerprint, RunSecret, Timestamp};

/// The digest under which content enters the journal: HMAC-SHA256 keyed with the run's secret,
/// so that erasing the content (and the secret) leaves nothing to guess, and the chain whole.
pub fn content_digest(secret: &RunSecret, content: &[u8]) -> Digest {
    let mut key = [0; 64];
    key.split_at_mut(32).0.copy_from_slice(secret.as_bytes());
    let mut mac = Hmac::<Sha256>::new(&key.into());
    mac.update(b"agentkit/journal/content/v1");
    mac.update(content);
    Digest::from_bytes(mac.finalize().into_bytes().into())
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run was started.
    RunStarted {
        /// The agent's name.
        agent: String,
        /// Digest of the agent's definition.
        definition: Digest,
        /// On whose behalf: the principal's id.
        requester: String,
        /// How the principal was authenticated.
        authenticated_by: String,
        /// The policy version in force.
        policy: Digest,
        /// Whether that is the built-in policy, since none was set.
        built_in_policy: bool,
        /// Digest of the input.
        input: Digest,
    },
    /// The model answered.
    ModelAnswered {
        /// The step.
        step: u32,
        /// The model's name.
        model: String,
        /// Digest of its message.
        content: Digest,
        /// Input tokens, where the provider says.
        input_tokens: Option<u64>,
        /// Output tokens, where the provider says.
        output_tokens: Option<u64>,
    },
    /// The model failed; nothing of that turn counts.
    ModelFailed {
        /// The step.
        step: u32,
        /// What went wrong.
        error: String,
    },
    /// The gate decided about a proposed call.
    GateDecided {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The state that the gate gave the call.
        outcome: CallState,
        /// Tells equal actions of the run.
        action: Option<ActionDigest>,
        /// The policies that determined it.
        policies: Vec<String>,
        /// The policy version in force.
        policy: Digest,
        /// Errors of policy evaluation, which never let a call through.
        errors: Vec<String>,
    },
    /// A call was put before people.
    ApprovalRequested {
        /// The call.
        call: CallId,
        /// What a decision must name.
        fingerprint: Fingerprint,
        /// How many people must approve.
        quorum: u32,
        /// Until when.
        expires_at: Timestamp,
    },
    /// A person decided.
    Decided {
        /// The call.
        call: CallId,
        /// What was decided.
        verdict: String,
        /// By whom.
        approver: String,
        /// How the approver was authenticated.
        authenticated_by: String,
        /// The fingerprint that the approver saw.
        fingerprint: Fingerprint,
        /// Digest of the reason, amendment or answer.
        content: Option<Digest>,
        /// The state of the call after it.
        state: CallState,
    },
    /// The approval was used up and the call was started.
    Released {
        /// The call.
        call: CallId,
        /// The fingerprint, recomputed from the stored bytes.
        fingerprint: Fingerprint,
        /// Whose approvals counted.
        approvers: Vec<String>,
        /// The policies that determined it.
        policies: Vec<String>,
        /// The policy version in force.
        policy: Digest,
        /// The lease epoch of the instance that executes it.
        epoch: i64,
    },
    /// The call was not released.
    ReleaseRefused {
        /// The call.
        call: CallId,
        /// Why.
        why: String,
        /// The state of the call after it.
        state: CallState,
    },
    /// The run's session took on labels by a call.
    Labelled {
        /// The call.
        call: CallId,
        /// What it took on, sorted.
        labels: Vec<String>,
    },
    /// The call ended, or asked a question.
    CallEnded {
        /// The call.
        call: CallId,
        /// The state.
        state: CallState,
        /// Digest of the result, error or question.
        content: Digest,
    },
    /// The approval was used up and the call was handed to a sub-agent.
    Delegated {
        /// The call.
        call: CallId,
        /// The sub-agent.
        agent: String,
        /// The fingerprint, recomputed from the stored bytes.
        fingerprint: Fingerprint,
        /// Whose approvals counted.
        approvers: Vec<String>,
        /// The policies that determined it.
        policies: Vec<String>,
        /// The policy version in force.
        policy: Digest,
    },
    /// Somebody asked that the run be cancelled.
    CancelRequested {
        /// Who.
        by: String,
        /// How that person was authenticated.
        authenticated_by: String,
    },
    /// Nobody decided in time.
    Expired {
        /// The call.
        call: CallId,
        /// When the time was over.
        at: Timestamp,
    },
    /// An instance took the run over from one that is gone.
    TakenOver {
        /// The new lease epoch.
        epoch: i64,
    },
    /// The run waits for people.
    RunSuspended {
        /// How many calls wait.
        pending: u32,
        /// The span in which it was put down, as `traceparent` of W3C Trace Context, where it was
        /// traced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        span: Option<String>,
    },
    /// The run ended.
    RunEnded {
        /// How: `finished`, `failed` or `cancelled`.
        status: String,
    },
    /// What people, the model and the tools wrote was erased, with the run's secret. The events
    /// stay, and so does the chain.
    ContentErased {
        /// Why.
        reason: String,
    },
}

impl Event {
    /// The name under which the event is stored.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::ModelAnswered { .. } => "model_answered",
            Self::ModelFailed { .. } => "model_failed",
            Self::GateDecided { .. } => "gate_decided",
            Self::ApprovalRequested { .. } => "approval_requested",
            Self::Decided { .. } => "decided",
            Self::Released { .. } => "released",
            Self::ReleaseRefused { .. } => "release_refused",
            Self::CallEnded { .. } => "call_ended",
            Self::Labelled { .. } => "labelled",
            Self::Delegated { .. } => "delegated",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::Expired { .. } => "expired",
            Self::TakenOver { .. } => "taken_over",
            Self::RunSuspended { .. } => "run_suspended",
            Self::RunEnded { .. } => "run_ended",
            Self::ContentErased { .. } => "content_erased",
        }
    }
}
