//! What a test file holds, once it has been read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::attribute::AttributeValue;
use crate::call::{Approvals, Call, Facts, User};
use crate::decision::{Outcome, Verdict};
use crate::provider::Provided;
use crate::session::SessionFacts;

use super::document::Place;

/// A call and everything that is expected of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) at: Place,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) user: User,
    pub(crate) agent: String,
    pub(crate) run: String,
    pub(crate) step: u32,
    /// Microseconds since the epoch.
    pub(crate) now: i64,
    /// The past of the session, as far as it is told.
    pub(crate) session: SessionFacts,
    /// What the tool derives from the arguments.
    pub(crate) derived: Option<BTreeMap<String, AttributeValue>>,
    /// What the application adds.
    pub(crate) provided: Option<Provided>,
    /// The approvals that `release`, `may_approve` and `may_not_approve` are asked with.
    pub(crate) approvals: Approvals,
    pub(crate) outcome: Option<(Outcome, By)>,
    pub(crate) release: Option<(Verdict, By)>,
    pub(crate) approvers: Vec<Approver>,
    /// Texts that the evaluation errors must hold, one for each error.
    pub(crate) errors: Vec<String>,
}

impl Case {
    pub(crate) fn call(&self) -> Call<'_> {
        Call {
            tool: &self.tool,
            arguments: &self.arguments,
            user: &self.user,
            agent: &self.agent,
            run: &self.run,
            step: self.step,
            now: self.now,
            facts: Facts {
                session: Some(&self.session),
                derived: self.derived.as_ref(),
                provided: self.provided.as_ref(),
            },
        }
    }

    /// True if the case expects an answer by this policy.
    pub(crate) fn names(&self, policy: &str) -> bool {
        let outcome = self.outcome.iter().map(|(_, by)| by);
        let release = self.release.iter().map(|(_, by)| by);
        let approvers = self.approvers.iter().map(|approver| &approver.by);
        outcome
            .chain(release)
            .chain(approvers)
            .any(|by| matches!(by, By::Exactly(ids) if ids.contains(policy)))
    }
}

/// The policies that must have brought an answer about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Whichever.
    Any,
    /// Exactly these; none for an answer by default.
    Exactly(BTreeSet<String>),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any policy"),
            Self::Exactly(ids) if ids.is_empty() => f.write_str("no policy"),
            Self::Exactly(ids) => {
                for (index, id) in ids.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}`{id}`")?;
                }
                Ok(())
            }
        }
    }
}

/// Whether a person may approve.
#[derive(Clone, Debug)]
pub(crate) struct Approver {
    pub(crate) user: User,
    pub(crate) may: bool,
    pub(crate) by: By,
}

/// A survivor of mutation that its author has explained.
#[derive(Clone, Debug)]
pub(crate) struct Equivalent {
    pub(crate) at: Place,
    pub(crate) policy: String,
    pub(crate) change: String,
    pub(crate) reason: String,
}
