use std::{collections::BTreeMap, fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{approval::Reason, call::Principal};

/// A call as a run's predicate sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProposedCall {
    /// The agent that calls: the run's, or one below it.
    pub agent: String,
    /// The tool's name.
    pub tool: String,
    /// The effective arguments.
    pub arguments: Value,
    /// On whose behalf the run acts.
    pub requester: Principal,
    /// What the application gave the run along.
    pub context: BTreeMap<String, Value>,
}

/// What a predicate fails with; it means approval.
pub type PredicateError = Box<dyn std::error::Error + Send + Sync>;

type Predicate =
    dyn Fn(ProposedCall) -> BoxFuture<'static, Result<bool, PredicateError>> + Send + Sync;

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
        predicate: impl Fn(&ProposedCall) -> Result<bool, PredicateError> + Send + Sync + 'static,
    ) -> Self {
        let predicate = Arc::new(predicate);
        Self::When(Arc::new(move |call| {
            let predicate = Arc::clone(&predicate);
            Box::pin(async move { predicate(&call) })
        }))
    }

    /// A predicate that has to wait for what it says, such as for an answer of another service.
    pub fn when_async<F, R>(predicate: F) -> Self
    where
        F: Fn(ProposedCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<bool, PredicateError>> + Send + 'static,
    {
        let predicate = Arc::new(predicate);
        Self::When(Arc::new(move |call| {
            let predicate = Arc::clone(&predicate);
            // Within the future, so that a panic before the first wait is caught as well.
            Box::pin(async move { predicate(call).await })
        }))
    }

    /// What the run demands for one call.
    pub(crate) async fn demand(&self, call: impl Fn() -> ProposedCall + Send) -> RunDemand {
        match self {
            Self::Off => RunDemand::None,
            Self::On => RunDemand::Always,
            Self::When(predicate) => {
                let said = AssertUnwindSafe(predicate(call())).catch_unwind().await;
                match said {
                    Ok(Ok(false)) => RunDemand::None,
                    Ok(Ok(true)) => RunDemand::Predicate,
                    Ok(Err(_)) | Err(_) => RunDemand::Unavailable,
                }
            }
        }
    }

    /// What the run demands where its predicate cannot be asked.
    pub(crate) const fn demand_unasked(&self) -> RunDemand {
        match self {
            Self::Off => RunDemand::None,
            Self::On => RunDemand::Always,
            Self::When(_) => RunDemand::Unavailable,
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
    #![allow(clippy::panic, clippy::indexing_slicing, reason = "tests may")]
    use serde_json::json;

    use super::*;

    async fn demand(option: &RequireApproval) -> RunDemand {
        let call = || ProposedCall {
            agent: "desk".to_owned(),
            tool: "pay".to_owned(),
            arguments: json!({"amount": 5}),
            requester: Principal::new("alice", "test"),
            context: BTreeMap::new(),
        };
        option.demand(call).await
    }

    #[tokio::test]
    async fn a_predicate_that_cannot_say_means_approval() {
        for (option, expected) in [
            (RequireApproval::when(|_| Ok(false)), RunDemand::None),
            (RequireApproval::when(|_| Ok(true)), RunDemand::Predicate),
            (
                RequireApproval::when(|_| Err("x".into())),
                RunDemand::Unavailable,
            ),
            (
                RequireApproval::when(|_| panic!("x")),
                RunDemand::Unavailable,
            ),
            (
                RequireApproval::when_async(|_| async { Ok(false) }),
                RunDemand::None,
            ),
            (
                RequireApproval::when_async(|call| async move {
                    tokio::task::yield_now().await;
                    Ok(call.arguments["amount"] == 5)
                }),
                RunDemand::Predicate,
            ),
            (
                RequireApproval::when_async(|_| async { Err("x".into()) }),
                RunDemand::Unavailable,
            ),
            (
                RequireApproval::when_async(|_| async {
                    tokio::task::yield_now().await;
                    panic!("x")
                }),
                RunDemand::Unavailable,
            ),
        ] {
            assert_eq!(demand(&option).await, expected);
        }
    }

    #[tokio::test]
    async fn a_predicate_does_not_survive_a_restart_and_means_approval() {
        let option = RequireApproval::when(|_| Ok(false));
        let restored = option.stored().restored();
        assert_eq!(demand(&restored).await, RunDemand::Unavailable);
        assert_eq!(option.demand_unasked(), RunDemand::Unavailable);
        assert_eq!(
            demand(&RequireApproval::Off.stored().restored()).await,
            RunDemand::None
        );
        assert_eq!(
            demand(&RequireApproval::On.stored().restored()).await,
            RunDemand::Always
        );
    }
}
