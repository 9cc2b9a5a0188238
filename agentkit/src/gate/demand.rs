use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{approval::Reason, call::Principal};

/// A call as a run's predicate sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProposedCall<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The effective arguments.
    pub arguments: &'a serde_json::Value,
    /// On whose behalf the run acts.
    pub requester: &'a Principal,
}

impl<'a> ProposedCall<'a> {
    pub(crate) const fn new(
        tool: &'a str,
        arguments: &'a serde_json::Value,
        requester: &'a Principal,
    ) -> Self {
        Self {
            tool,
            arguments,
            requester,
        }
    }
}

/// What a predicate fails with; it means approval.
pub type PredicateError = Box<dyn std::error::Error + Send + Sync>;

type Predicate = dyn Fn(&ProposedCall<'_>) -> Result<bool, PredicateError> + Send + Sync;

/// Whether a run asks for approval of its calls, whatever tools and policy say.
#[derive(Clone, Default)]
pub enum RequireApproval {
    /// It does not.
    #[default]
    Off,
    /// Every call needs approval.
    On,
    /// A predicate says which calls do. One that fails or panics, or that is gone after a
    /// restart, means approval.
    When(Arc<Predicate>),
}

impl RequireApproval {
    /// A predicate over the calls.
    pub fn when(
        predicate: impl Fn(&ProposedCall<'_>) -> Result<bool, PredicateError> + Send + Sync + 'static,
    ) -> Self {
        Self::When(Arc::new(predicate))
    }

    /// What the run demands for one call.
    pub(crate) fn demand(&self, call: &ProposedCall<'_>) -> RunDemand {
        match self {
            Self::Off => RunDemand::None,
            Self::On => RunDemand::Always,
            Self::When(predicate) => match catch_unwind(AssertUnwindSafe(|| predicate(call))) {
                Ok(Ok(false)) => RunDemand::None,
                Ok(Ok(true)) => RunDemand::Predicate,
                Ok(Err(_)) | Err(_) => RunDemand::Unavailable,
            },
        }
    }

    pub(crate) const fn stored(&self) -> StoredDemand {
        match self {
            Self::Off => StoredDemand::Off,
            Self::On => StoredDemand::On,
            Self::When(_) => StoredDemand::Predicate,
        }
    }
}

impl fmt::Debug for RequireApproval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "Off",
            Self::On => "On",
            Self::When(_) => "When(…)",
        })
    }
}

/// What is stored of [`RequireApproval`]: a predicate cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredDemand {
    Off,
    On,
    Predicate,
}

impl StoredDemand {
    /// What the option means in a process that did not start the run.
    pub(crate) fn restored(self) -> RequireApproval {
        match self {
            Self::Off => RequireApproval::Off,
            Self::On => RequireApproval::On,
            Self::Predicate => {
                RequireApproval::when(|_| Err("the predicate is gone after a restart".into()))
            }
        }
    }
}

/// What a run demands for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunDemand {
    /// Nothing.
    None,
    /// Approval of every call.
    Always,
    /// Approval, says the predicate.
    Predicate,
    /// Approval, since the predicate cannot say.
    Unavailable,
}

impl RunDemand {
    pub(super) const fn reason(self) -> Option<Reason> {
        match self {
            Self::None => None,
            Self::Always => Some(Reason::RunOption),
            Self::Predicate => Some(Reason::Predicate),
            Self::Unavailable => Some(Reason::PredicateUnavailable),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "tests may")]
    use serde_json::json;

    use super::*;

    fn demand(option: &RequireApproval) -> RunDemand {
        let requester = Principal::new("alice", "test");
        let arguments = json!({"amount": 5});
        option.demand(&ProposedCall::new("pay", &arguments, &requester))
    }

    #[test]
    fn a_predicate_that_cannot_say_means_approval() {
        assert_eq!(
            demand(&RequireApproval::when(|_| Ok(false))),
            RunDemand::None
        );
        assert_eq!(
            demand(&RequireApproval::when(|_| Ok(true))),
            RunDemand::Predicate
        );
        assert_eq!(
            demand(&RequireApproval::when(|_| Err("x".into()))),
            RunDemand::Unavailable
        );
        assert_eq!(
            demand(&RequireApproval::when(|_| panic!("x"))),
            RunDemand::Unavailable
        );
    }

    #[test]
    fn a_predicate_does_not_survive_a_restart_and_means_approval() {
        let option = RequireApproval::when(|_| Ok(false));
        assert_eq!(demand(&option.stored().restored()), RunDemand::Unavailable);
        assert_eq!(
            demand(&RequireApproval::Off.stored().restored()),
            RunDemand::None
        );
        assert_eq!(
            demand(&RequireApproval::On.stored().restored()),
            RunDemand::Always
        );
    }
}
