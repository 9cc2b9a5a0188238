//! The gate: combines what the tool declares, what the run demands and what the policy says.
//!
//! Deny beats approval, approval beats allow. The declaration and the run can turn an allow into
//! an approval; nothing turns a deny into anything.

mod demand;
mod derived;
mod several;

pub(crate) use demand::StoredDemand;
pub use demand::{PredicateError, ProposedCall, RequireApproval, RunDemand};
pub(crate) use derived::{derived_types, derived_values};
pub(crate) use several::{both_decide, both_permit, both_release};

use agentkit_policy::{Decision, Outcome, PolicyRef};

use crate::{approval::Reason, tool::ApprovalRule};

/// What the gate says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gated {
    /// It may run on its own.
    Allow,
    /// People must approve it.
    Ask {
        /// How many distinct people.
        quorum: u32,
        /// How many of them the declaration or the run demands, whatever the policy says.
        demanded: u32,
        /// Why.
        reasons: Vec<Reason>,
    },
    /// It must not run.
    Deny {
        /// What the model is told.
        why: String,
    },
}

/// Combines declaration, run and policy.
pub fn combine(declared: &ApprovalRule, run: RunDemand, policy: &Decision) -> Gated {
    let mut reasons = Vec::new();
    if declared.required {
        reasons.push(Reason::Declaration {
            why: declared.why.clone(),
        });
    }
    reasons.extend(run.reason());
    let demanded = demanded(declared, run);
    let quorum = match policy.outcome {
        Outcome::Deny => {
            return Gated::Deny {
                why: denial(policy),
            };
        }
        Outcome::Allow => demanded,
        Outcome::RequireApproval { quorum } => {
            reasons.extend(policy.determining.iter().map(policy_reason));
            quorum.max(demanded).max(1)
        }
    };
    if quorum == 0 {
        Gated::Allow
    } else {
        Gated::Ask {
            quorum,
            demanded,
            reasons,
        }
    }
}

/// How many people the declaration, decided for the arguments at hand, or the run demands.
pub(crate) fn demanded(declared: &ApprovalRule, run: RunDemand) -> u32 {
    match (declared.required, run) {
        (true, _) => declared.quorum.max(1),
        (false, RunDemand::None) => 0,
        (false, _) => 1,
    }
}

/// A policy as people are told of it.
pub(crate) fn policy_reason(policy: &PolicyRef) -> Reason {
    Reason::Policy {
        id: policy.id.clone(),
        title: policy.title.clone(),
        why: policy.why.clone(),
    }
}

/// The text for the model when the policy denies a call.
pub(crate) fn denial(policy: &Decision) -> String {
    let mut text = String::from("denied: ");
    if policy.determining.is_empty() {
        text.push_str("no policy permits this call");
    }
    for (index, policy) in policy.determining.iter().enumerate() {
        if index > 0 {
            text.push_str("; ");
        }
        text.push_str(&policy_reason(policy).to_string());
    }
    for error in &policy.errors {
        text.push_str("; ");
        text.push_str(&error.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unreachable, reason = "tests may")]
    use agentkit_policy::Effect;

    use super::*;

    fn policy(outcome: Outcome) -> Decision {
        Decision {
            outcome,
            determining: vec![PolicyRef {
                id: "p".into(),
                title: None,
                why: Some("because".into()),
                owner: None,
                notify: None,
                severity: None,
                effect: Effect::Permit,
                file: "f".into(),
                line: 1,
            }],
            errors: Vec::new(),
            demanded_by_declaration: false,
            shadow: None,
        }
    }

    const DEMANDS: [RunDemand; 4] = [
        RunDemand::None,
        RunDemand::Always,
        RunDemand::Predicate,
        RunDemand::Unavailable,
    ];

    #[test]
    fn nothing_turns_a_deny_into_anything() {
        for declared in [ApprovalRule::default(), ApprovalRule::required()] {
            for demand in DEMANDS {
                let gated = combine(&declared, demand, &policy(Outcome::Deny));
                assert!(
                    matches!(gated, Gated::Deny { .. }),
                    "{declared:?} {demand:?}"
                );
            }
        }
    }

    #[test]
    fn a_call_runs_alone_only_where_nobody_asks() {
        for declared in [ApprovalRule::default(), ApprovalRule::required()] {
            for demand in DEMANDS {
                for outcome in [Outcome::Allow, Outcome::RequireApproval { quorum: 1 }] {
                    let alone = !declared.required
                        && demand == RunDemand::None
                        && outcome == Outcome::Allow;
                    let gated = combine(&declared, demand, &policy(outcome));
                    assert_eq!(
                        gated == Gated::Allow,
                        alone,
                        "{declared:?} {demand:?} {outcome}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_larger_quorum_counts() {
        let mut declared = ApprovalRule::required();
        declared.quorum = 3;
        for (policy_quorum, expected) in [(2, 3), (4, 4)] {
            let decision = policy(Outcome::RequireApproval {
                quorum: policy_quorum,
            });
            let Gated::Ask {
                quorum,
                demanded,
                reasons,
            } = combine(&declared, RunDemand::None, &decision)
            else {
                unreachable!("an approval is required")
            };
            assert_eq!((quorum, demanded, reasons.len()), (expected, 3, 2));
        }
    }
}
