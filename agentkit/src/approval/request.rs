use serde::{Deserialize, Serialize};

use crate::call::{CallId, Canonical, Fingerprint, Principal, RunId, Timestamp};

/// One tool call that waits for a person, as the store knows it: enough to draw the interface.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingCall {
    /// The run that waits.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The agent that calls.
    pub agent: String,
    /// The tool's name.
    pub tool: String,
    /// What is asked of the person.
    pub kind: PendingKind,
    /// The effective arguments: byte for byte what will run.
    pub arguments: Canonical,
    /// What a decision must name.
    pub fingerprint: Fingerprint,
    /// Why a person is asked.
    pub reasons: Vec<Reason>,
    /// How many distinct people must approve.
    pub quorum: u32,
    /// Who has approved so far, for this very fingerprint.
    pub approvals: Vec<Vote>,
    /// On whose behalf the agent acts.
    pub requester: Principal,
    /// Since when it waits.
    pub requested_at: Timestamp,
    /// Until when it can be decided.
    pub expires_at: Timestamp,
    /// The question's payload, where the tool asked one.
    pub payload: Option<Canonical>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
