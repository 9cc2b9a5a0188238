//! One loaded policy set: the questions are put here.

use std::collections::BTreeMap;
use std::fmt;

use cedar_policy::EntityUid;
use cedar_policy::pst::Template;

use crate::ask::{Answer, Prepared, Votes};
use crate::call::{Approvals, Call, User};
use crate::decision::{
    Decision, EvaluationError, Outcome, Permission, PolicyRef, RefusedVote, Release,
    ShadowDecision, Verdict,
};
use crate::declaration::Settings;
use crate::entities::user_uid;
use crate::load_error::Finding;
use crate::provider::EntityType;
use crate::slice::Slice;

/// A loaded, validated and sliced set of policies; immutable.
pub struct PolicySet {
    pub(crate) settings: Settings,
    pub(crate) slices: BTreeMap<String, Slice>,
    pub(crate) policies: BTreeMap<String, Held>,
    pub(crate) digest: [u8; 32],
    pub(crate) built_in: bool,
    pub(crate) schema_text: String,
    pub(crate) warnings: Vec<Finding>,
    /// The hypothetical approvers of the search for a quorum.
    pub(crate) nobodies: Vec<EntityUid>,
}

/// What is kept of a policy besides its place in the slices.
pub(crate) struct Held {
    pub(crate) about: PolicyRef,
    pub(crate) body: Template,
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySet")
            .field("tools", &self.slices.len())
            .field("policies", &self.policies.len())
            .field("built_in", &self.built_in)
            .finish_non_exhaustive()
    }
}

/// What the policies make of a call, before the tool's declaration has its say.
struct Routed {
    outcome: Outcome,
    determining: Vec<PolicyRef>,
    errors: Vec<EvaluationError>,
}

impl PolicySet {
    /// Decides whether a call may run alone, needs approvals, or may not run.
    pub fn decide(&self, call: &Call<'_>) -> Decision {
        let slice = match self.slice(call.tool) {
            Ok(slice) => slice,
            Err(error) => return denied(error),
        };
        on_stack(slice, || {
            let prepared = match self.prepare(slice, call, &[]) {
                Ok(prepared) => prepared,
                Err(error) => return denied(error),
            };
            let routed = self.route(&prepared, call);
            let shadow = self.shadow(slice, call, &routed);
            let demanded =
                routed.outcome == Outcome::Allow && slice.tool.declaration.require_approval;
            Decision {
                outcome: if demanded {
                    Outcome::RequireApproval { quorum: 1 }
                } else {
                    routed.outcome
                },
                determining: routed.determining,
                errors: routed.errors,
                demanded_by_declaration: demanded,
                shadow,
            }
        })
    }

    /// Decides just before execution, with the approvals that the call really has; every approver
    /// is asked for again.
    ///
    /// Votes count by distinct person. Neither the agent's own vote nor any vote on a request that
    /// lies in the future or is too old counts, whatever the policies say.
    pub fn release(&self, call: &Call<'_>, approvals: &Approvals) -> Release {
        let slice = match self.slice(call.tool) {
            Ok(slice) => slice,
            Err(error) => return not_released(error),
        };
        on_stack(slice, || {
            let mut people: Vec<&User> = distinct(&approvals.approvers);
            people.retain(|person| !self.is_unknown(call, person));
            let prepared = match self.prepare(slice, call, &people) {
                Ok(prepared) => prepared,
                Err(error) => return not_released(error),
            };
            self.release_prepared(slice, &prepared, call, approvals)
        })
    }

    /// Decides whether a person may approve a call that has these approvals so far.
    pub fn may_approve(&self, call: &Call<'_>, approver: &User, so_far: &Approvals) -> Permission {
        let slice = match self.slice(call.tool) {
            Ok(slice) => slice,
            Err(error) => return not_permitted(error),
        };
        on_stack(slice, || {
            let before = distinct(&so_far.approvers);
            if before.iter().any(|person| person.id == approver.id) {
                return refusal("this person has already approved the call");
            }
            if let Some(why) = self
                .untimely(call, so_far)
                .or_else(|| self.unfit(call, approver))
            {
                return refusal(&why);
            }
            let people: Vec<&User> = before.iter().copied().chain([approver]).collect();
            let asked = self.prepare(slice, call, &people).and_then(|prepared| {
                let approvers: Result<Vec<EntityUid>, String> =
                    before.iter().map(|person| user_uid(&person.id)).collect();
                let votes = approvers.map_err(fault)?;
                let principal = user_uid(&approver.id).map_err(fault)?;
                Ok(prepared.approve(
                    &principal,
                    Votes {
                        approvers: &votes,
                        requested_at: so_far.requested_at.div_euclid(1000),
                    },
                ))
            });
            match asked {
                Ok(answer) => Permission {
                    permitted: answer.permitted,
                    why: why_approve(&answer),
                    determining: self.refs(&answer.reasons),
                    errors: answer.errors,
                },
                Err(error) => not_permitted(error),
            }
        })
    }

    /// SHA-256 over all policies sorted by id, the schema and the version of the mapping.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// SHA-256 of what can influence decisions about one tool; an approval is bound to it.
    /// None for a tool that was not declared.
    pub fn slice_digest(&self, tool: &str) -> Option<[u8; 32]> {
        self.slices.get(tool).map(|slice| slice.digest)
    }

    /// True for the set that is in force when the application gives no policies.
    pub fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// The Cedar schema against which the policies were validated, for editors and for reading.
    pub fn schema_text(&self) -> &str {
        &self.schema_text
    }

    /// The policies of the set, sorted by id.
    pub fn policies(&self) -> impl Iterator<Item = &PolicyRef> {
        self.policies.values().map(|held| &held.about)
    }

    /// What the load found worth a look although it does not stand in the way.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    fn slice(&self, tool: &str) -> Result<&Slice, EvaluationError> {
        self.slices.get(tool).ok_or_else(|| {
            fault(format!(
                "the tool `{tool}` is not declared, declare it when the policies are loaded"
            ))
        })
    }

    pub(crate) fn prepare<'a>(
        &'a self,
        slice: &'a Slice,
        call: &Call<'a>,
        people: &[&User],
    ) -> Result<Prepared<'a>, EvaluationError> {
        let reserved = std::iter::once(&call.user)
            .chain(people)
            .any(|person| person.id.contains('\0'));
        if reserved {
            return Err(fault(
                "the id of a user holds a NUL character, which no id may hold".to_owned(),
            ));
        }
        Prepared::new(slice, &self.settings, call, people, !self.built_in)
    }

    fn route(&self, prepared: &Prepared<'_>, call: &Call<'_>) -> Routed {
        let unattended = prepared.unattended();
        let mut errors = unattended.errors;
        if unattended.permitted || unattended.forbidden {
            return Routed {
                outcome: if unattended.permitted {
                    Outcome::Allow
                } else {
                    Outcome::Deny
                },
                determining: self.refs(&unattended.reasons),
                errors,
            };
        }
        match self.quorum(prepared, call, &mut errors) {
            Ok(routed) => Routed {
                outcome: Outcome::RequireApproval { quorum: routed.0 },
                determining: routed.1,
                errors,
            },
            Err(determining) => Routed {
                outcome: Outcome::Deny,
                determining,
                errors,
            },
        }
    }

    /// The smallest number of approvals with which the call may run, tried with people who do
    /// not exist. Every number is tried, since a forbid may itself read the approvals.
    fn quorum(
        &self,
        prepared: &Prepared<'_>,
        call: &Call<'_>,
        errors: &mut Vec<EvaluationError>,
    ) -> Result<(u32, Vec<PolicyRef>), Vec<PolicyRef>> {
        let mut forbids = Vec::new();
        for (number, _) in (1..).zip(&self.nobodies) {
            let approvers = usize::try_from(number)
                .ok()
                .and_then(|number| self.nobodies.get(..number))
                .unwrap_or(&self.nobodies);
            let answer = prepared.approved(Votes {
                approvers,
                requested_at: call.now.div_euclid(1000),
            });
            note(errors, answer.errors);
            if answer.permitted {
                return Ok((number, self.refs(&answer.reasons)));
            }
            if answer.forbidden {
                forbids = self.refs(&answer.reasons);
            }
        }
        Err(forbids)
    }

    fn shadow(&self, slice: &Slice, call: &Call<'_>, real: &Routed) -> Option<ShadowDecision> {
        if !slice.has_shadow() {
            return None;
        }
        let shadow = self.route(&self.prepare(slice, call, &[]).ok()?.with_shadow(), call);
        let differs = shadow.outcome != real.outcome || shadow.determining != real.determining;
        differs.then_some(ShadowDecision {
            outcome: shadow.outcome,
            determining: shadow.determining,
            errors: shadow.errors,
        })
    }

    fn release_prepared(
        &self,
        slice: &Slice,
        prepared: &Prepared<'_>,
        call: &Call<'_>,
        approvals: &Approvals,
    ) -> Release {
        let unattended = prepared.unattended();
        let mut release = Release {
            verdict: Verdict::Deny,
            counted: Vec::new(),
            refused: Vec::new(),
            determining: self.refs(&unattended.reasons),
            errors: unattended.errors,
        };
        if unattended.forbidden {
            return release;
        }
        let declared = u32::from(slice.tool.declaration.require_approval);
        let demanded = approvals.demanded_quorum.unwrap_or(0).max(declared);
        let counted = self.count(prepared, call, approvals, &mut release);
        let have = u32::try_from(counted.len()).unwrap_or(u32::MAX);
        if unattended.permitted {
            release.verdict = if have >= demanded {
                Verdict::Run
            } else {
                Verdict::Wait { quorum: demanded }
            };
            return release;
        }
        if have > 0 {
            let answer = prepared.approved(Votes {
                approvers: &counted,
                requested_at: approvals.requested_at.div_euclid(1000),
            });
            note(&mut release.errors, answer.errors);
            release.determining = self.refs(&answer.reasons);
            if answer.permitted {
                release.verdict = if have >= demanded {
                    Verdict::Run
                } else {
                    Verdict::Wait { quorum: demanded }
                };
                return release;
            }
        }
        match self.quorum(prepared, call, &mut release.errors) {
            Ok((quorum, determining)) => {
                release.verdict = Verdict::Wait {
                    quorum: quorum.max(demanded),
                };
                release.determining = determining;
            }
            Err(forbids) => release.determining = forbids,
        }
        release
    }

    /// The votes that count. Each approver is asked about with the votes before theirs, as they
    /// were when they voted.
    fn count(
        &self,
        prepared: &Prepared<'_>,
        call: &Call<'_>,
        approvals: &Approvals,
        release: &mut Release,
    ) -> Vec<EntityUid> {
        let untimely = self.untimely(call, approvals);
        let mut counted: Vec<EntityUid> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for approver in &approvals.approvers {
            let mut refuse = |why: String, determining: Vec<PolicyRef>| {
                release.refused.push(RefusedVote {
                    approver: approver.id.clone(),
                    why,
                    determining,
                });
            };
            if seen.contains(&approver.id.as_str()) {
                refuse(
                    "this person has already been counted".to_owned(),
                    Vec::new(),
                );
                continue;
            }
            seen.push(&approver.id);
            if let Some(why) = untimely.clone().or_else(|| self.unfit(call, approver)) {
                refuse(why, Vec::new());
                continue;
            }
            let principal = match user_uid(&approver.id) {
                Ok(principal) => principal,
                Err(why) => {
                    refuse(why, Vec::new());
                    continue;
                }
            };
            let answer = prepared.approve(
                &principal,
                Votes {
                    approvers: &counted,
                    requested_at: approvals.requested_at.div_euclid(1000),
                },
            );
            if answer.permitted {
                counted.push(principal);
                release.counted.push(approver.id.clone());
            } else {
                refuse(why_approve(&answer), self.refs(&answer.reasons));
            }
            note(&mut release.errors, answer.errors);
        }
        counted
    }

    /// Whether the application's provider was asked about a person and does not know them.
    fn is_unknown(&self, call: &Call<'_>, person: &User) -> bool {
        let relied_on = self.settings.extension.user != EntityType::default();
        let answered = call
            .facts
            .provided
            .filter(|provided| provided.fault.is_none());
        relied_on && answered.is_some_and(|provided| !provided.knows_user(&person.id))
    }

    /// Why this person can never approve the call.
    fn unfit(&self, call: &Call<'_>, approver: &User) -> Option<String> {
        let why = if approver.id.is_empty() {
            "the approver is not known, authenticate first"
        } else if approver.id == call.agent {
            "an agent cannot approve"
        } else if self.is_unknown(call, approver) {
            "the entity provider does not know this person"
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    /// Why no vote on this request counts now, if none does.
    fn untimely(&self, call: &Call<'_>, approvals: &Approvals) -> Option<String> {
        let age = i128::from(call.now) - i128::from(approvals.requested_at);
        let Ok(age) = u128::try_from(age) else {
            return Some("the request for approval lies in the future".to_owned());
        };
        let most = approvals.max_age.min(self.settings.max_approval_age);
        (age > most.as_micros()).then(|| {
            format!(
                "the request for approval is {} seconds old, {} are allowed, ask again",
                age / 1_000_000,
                most.as_secs()
            )
        })
    }

    fn refs(&self, ids: &[String]) -> Vec<PolicyRef> {
        ids.iter()
            .filter_map(|id| self.policies.get(id))
            .map(|held| held.about.clone())
            .collect()
    }
}

/// Answers on a stack that is large enough for the tallest policy of the slice.
pub(crate) fn on_stack<T>(slice: &Slice, answer: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(slice.stack, slice.stack, answer)
}

fn distinct(people: &[User]) -> Vec<&User> {
    let mut distinct: Vec<&User> = Vec::with_capacity(people.len());
    for person in people {
        if !person.id.is_empty() && !distinct.iter().any(|known| known.id == person.id) {
            distinct.push(person);
        }
    }
    distinct
}

/// People who do not exist, one for each approval that a policy may ask for; no real id holds a
/// NUL character.
pub(crate) fn nobodies(settings: &Settings) -> Result<Vec<EntityUid>, String> {
    (1..=settings.max_quorum)
        .map(|number| user_uid(&format!("\0hypothetical approver {number}")))
        .collect()
}

fn why_approve(answer: &Answer) -> String {
    if answer.permitted {
        "permitted by policy"
    } else if answer.forbidden && !answer.reasons.is_empty() {
        "forbidden by policy"
    } else if answer.errors.is_empty() {
        "no policy permits this person to approve the call"
    } else {
        "the policies could not be evaluated, so nobody may approve"
    }
    .to_owned()
}

fn note(errors: &mut Vec<EvaluationError>, more: Vec<EvaluationError>) {
    for error in more {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
}

fn fault(message: String) -> EvaluationError {
    EvaluationError {
        question: None,
        policy: None,
        message,
    }
}

fn denied(error: EvaluationError) -> Decision {
    Decision {
        outcome: Outcome::Deny,
        determining: Vec::new(),
        errors: vec![error],
        demanded_by_declaration: false,
        shadow: None,
    }
}

fn not_released(error: EvaluationError) -> Release {
    Release {
        verdict: Verdict::Deny,
        counted: Vec::new(),
        refused: Vec::new(),
        determining: Vec::new(),
        errors: vec![error],
    }
}

fn refusal(why: &str) -> Permission {
    Permission {
        permitted: false,
        why: why.to_owned(),
        determining: Vec::new(),
        errors: Vec::new(),
    }
}

fn not_permitted(error: EvaluationError) -> Permission {
    Permission {
        errors: vec![error],
        ..refusal("the call could not be evaluated, so nobody may approve")
    }
}
