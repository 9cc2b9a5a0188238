use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decision, Verdict};
use crate::call::{CallId, Canonical, Fingerprint, Principal, RunId, Timestamp};

/// One tool call that waits for a person, as the store knows it: enough to draw the interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingCall {
    /// The run that made the call.
    pub run: RunId,
    /// The run at the top of the delegation, which is to be resumed after the decision; the same
    /// where nothing was delegated.
    pub root: RunId,
    /// The names of the agents from the root's to the one that calls.
    pub path: Vec<String>,
    /// The thread that the root belongs to.
    pub thread: Option<String>,
    /// The call.
    pub call: CallId,
    /// The agent that calls.
    pub agent: String,
    /// The tool's name.
    pub tool: String,
    /// What is asked of the person.
    pub kind: PendingKind,
    /// The effective arguments: byte for byte what will run.
    #[serde(with = "super::canonical")]
    pub arguments: Canonical,
    /// What a decision must name.
    pub fingerprint: Fingerprint,
    /// Why a person is asked.
    pub reasons: Vec<Reason>,
    /// The ids of the policies that determined it.
    pub policies: Vec<String>,
    /// How many distinct people must approve.
    pub quorum: u32,
    /// Who has approved so far, for this very fingerprint.
    pub approvals: Vec<Vote>,
    /// Who amended the arguments last, where they are not the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amended_by: Option<String>,
    /// On whose behalf the agent acts.
    pub requester: Principal,
    /// Since when it waits.
    pub requested_at: Timestamp,
    /// Until when it can be decided.
    pub expires_at: Timestamp,
    /// The question's payload, where the tool asked one.
    #[serde(with = "super::canonical::optional")]
    pub payload: Option<Canonical>,
    /// JSON Schema of the answer, where the tool asked a question and the process that looks at
    /// it hosts the tool.
    pub answer_schema: Option<Value>,
    /// At which agent of the path one stands who looks at the call.
    #[serde(skip)]
    pub(crate) seen_from: usize,
}

impl PendingCall {
    /// Whether the call was made by a sub-agent of the agent that one looks from.
    pub fn is_delegated(&self) -> bool {
        self.path.len() > self.seen_from.saturating_add(1)
    }

    /// A decision about exactly this call with exactly these arguments.
    pub fn decision(&self, verdict: Verdict) -> Decision {
        Decision {
            run: self.run.clone(),
            call: self.call.clone(),
            fingerprint: self.fingerprint,
            verdict,
        }
    }

    /// The call as its own agent sees it, or one nearer to it, where it was delegated to `agent`.
    pub fn delegated_to(&self, agent: &str) -> Option<Self> {
        let next = self.seen_from.saturating_add(1);
        if self.path.get(next).map(String::as_str) != Some(agent) {
            return None;
        }
        let mut call = self.clone();
        call.seen_from = next;
        Some(call)
    }
}

/// What is asked of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingKind {
    /// May this call run with these arguments?
    Approval,
    /// The tool asks something before it can go on.
    Question,
    /// The instance died while the call was executing: did it take effect?
    InDoubt,
}

/// Why a person is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The tool's declaration demands it.
    Declaration {
        /// The reason that the declaration gives.
        why: Option<String>,
    },
    /// The run was started with approval demanded for its calls.
    RunOption,
    /// The run's predicate demanded it.
    Predicate,
    /// The run's predicate failed or is not available any more, which means approval.
    PredicateUnavailable,
    /// A policy permits the call with approval only.
    Policy {
        /// The policy's id.
        id: String,
        /// Its title, where it has one.
        title: Option<String>,
        /// Its reason in words, where it has one.
        why: Option<String>,
    },
    /// It was approved before, and what the approval was based on has changed since.
    AskedAgain {
        /// What changed.
        what: String,
    },
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Declaration { why: Some(why) } => write!(f, "the tool asks for it: {why}"),
            Self::Declaration { why: None } => f.write_str("the tool asks for it"),
            Self::RunOption => f.write_str("the run asks for it"),
            Self::Predicate => f.write_str("the run's predicate asks for it"),
            Self::PredicateUnavailable => {
                f.write_str("the run's predicate is not available, which means approval")
            }
            Self::Policy { id, title, why } => {
                write!(f, "policy `{id}`")?;
                if let Some(title) = title {
                    write!(f, " ({title})")?;
                }
                if let Some(why) = why {
                    write!(f, ": {why}")?;
                }
                Ok(())
            }
            Self::AskedAgain { what } => write!(f, "asked again, since {what}"),
        }
    }
}

/// One approval that counts towards the quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Vote {
    /// Who approved.
    pub approver: Principal,
    /// When, on the database's clock.
    pub at: Timestamp,
}

impl Vote {
    /// An approval by `approver` at a time.
    pub const fn new(approver: Principal, at: Timestamp) -> Self {
        Self { approver, at }
    }
}
