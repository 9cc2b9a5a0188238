//! What is answered: outcomes, the policies that brought them about, and faults on the way.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What may happen to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The call may run on its own.
    Allow,
    /// The call may run once this many different people have approved it.
    RequireApproval {
        /// Number of distinct approvers, at least 1.
        quorum: u32,
    },
    /// The call may not run.
    Deny,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::RequireApproval { quorum: 1 } => f.write_str("require approval by one person"),
            Self::RequireApproval { quorum } => write!(f, "require approval by {quorum} people"),
            Self::Deny => f.write_str("deny"),
        }
    }
}

/// One of the three questions that the engine puts to the policies about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// May the call run on its own? `Action::"T"`.
    Unattended,
    /// May it run with the approvals in `context.approvals`? `Action::"T with approval"`.
    Approved,
    /// May this person approve it? `Action::"approve T"`.
    Approve,
}

impl Question {
    /// The three questions, in the order in which they are put.
    pub const ALL: [Self; 3] = [Self::Unattended, Self::Approved, Self::Approve];

    /// Name of the Cedar action that puts this question about a tool or a group of tools.
    pub fn action(self, tool: &str) -> String {
        match self {
            Self::Unattended => tool.to_owned(),
            Self::Approved => format!("{tool} with approval"),
            Self::Approve => format!("approve {tool}"),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unattended => "unattended",
            Self::Approved => "approved",
            Self::Approve => "approve",
        })
    }
}

/// Whether a policy permits or forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// `permit`
    Permit,
    /// `forbid`
    Forbid,
}

/// A policy that took part in a decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PolicyRef {
    /// The policy's `@id`.
    pub id: String,
    /// Its `@title`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// Its `@why`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
    /// Its `@owner`: who answers for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner: Option<String>,
    /// Its `@notify`: who is to hear of what it brings about; telling them is the host's part.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub notify: Option<String>,
    /// Its `@severity`, in the words of whoever wrote it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub severity: Option<String>,
    /// Whether it permits or forbids.
    pub effect: Effect,
    /// Name of the source that holds it.
    pub file: String,
    /// Line of that source on which it begins, counted from 1.
    pub line: u32,
}

/// Something that went wrong while a question was answered; it never makes an answer laxer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EvaluationError {
    /// The question that was being answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question: Option<Question>,
    /// The policy whose evaluation failed; none where the call itself could not be mapped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy: Option<String>,
    /// What was wrong, with which value, and the remedy.
    pub message: String,
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(policy) = &self.policy {
            write!(f, "policy `{policy}`: ")?;
        }
        f.write_str(&self.message)
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What may happen to the call.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The policies that brought the outcome about; empty for a denial by default.
    pub determining: Vec<PolicyRef>,
    /// Evaluation errors and mapping failures.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<EvaluationError>,
    /// True where the policies would have let the call run alone and only the tool's declaration
    /// demands the approval.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub demanded_by_declaration: bool,
    /// What policies in `@mode("log_only")` would have made of the call, where it differs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shadow: Option<ShadowDecision>,
}

/// What would have been decided if the policies in `@mode("log_only")` were in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowDecision {
    /// The outcome that would have been.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The policies that would have brought it about.
    pub determining: Vec<PolicyRef>,
    /// Evaluation errors under the shadow policies.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<EvaluationError>,
}

/// What becomes of a call just before execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Run it now.
    Run,
    /// The approvals do not suffice; with `quorum` different people they would. Where `quorum` is
    /// not more than those counted, a new request is needed: the old one has aged, or a policy
    /// wants other people.
    Wait {
        /// Number of distinct approvers that the call needs.
        quorum: u32,
    },
    /// It may not run any more.
    Deny,
}

/// The answer to a call that is about to be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// What becomes of the call.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Ids of the people whose votes count, in the order of their votes.
    pub counted: Vec<String>,
    /// The votes that do not count, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub refused: Vec<RefusedVote>,
    /// The policies that brought the verdict about.
    pub determining: Vec<PolicyRef>,
    /// Evaluation errors and mapping failures.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<EvaluationError>,
}

/// A vote that does not count at release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedVote {
    /// Id of the person.
    pub approver: String,
    /// Why the vote does not count.
    pub why: String,
    /// The policies that forbid it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub determining: Vec<PolicyRef>,
}

/// Whether a person may approve a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// True if the person may approve.
    pub permitted: bool,
    /// The reason in one sentence, fit to be shown to the person.
    pub why: String,
    /// The policies that permit or forbid it; empty where no policy permits it.
    pub determining: Vec<PolicyRef>,
    /// Evaluation errors and mapping failures.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<EvaluationError>,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Run => f.write_str("run it now")?,
            Verdict::Wait { quorum: 1 } => f.write_str("wait for one person's approval")?,
            Verdict::Wait { quorum } => write!(f, "wait for the approval of {quorum} people")?,
            Verdict::Deny => f.write_str("do not run it")?,
        }
        for policy in &self.determining {
            write!(f, "\n  by {policy}")?;
        }
        if !self.counted.is_empty() {
            write!(f, "\n  approved by `{}`", self.counted.join("`, `"))?;
        }
        for vote in &self.refused {
            write!(
                f,
                "\n  the vote of `{}` does not count: {}",
                vote.approver, vote.why
            )?;
            for policy in &vote.determining {
                write!(f, "\n    by {policy}")?;
            }
        }
        for error in &self.errors {
            write!(f, "\n  error: {error}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let may = if self.permitted { "may" } else { "may not" };
        write!(f, "{may} approve: {}", self.why)?;
        for policy in &self.determining {
            write!(f, "\n  by {policy}")?;
        }
        for error in &self.errors {
            write!(f, "\n  error: {error}")?;
        }
        Ok(())
    }
}
