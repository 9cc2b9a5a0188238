//! Why a call was decided as it was, as data and as text.

use std::fmt;

use cedar_policy::Expression;
use cedar_policy::pst::{self, BinaryOp, Clause, Expr, PrincipalConstraint, Template};
use serde::{Deserialize, Serialize};

use crate::ask::Votes;
use crate::call::{Approvals, Call, User};
use crate::decision::{Decision, Effect, Outcome, PolicyRef, Question};
use crate::set::{PolicySet, on_stack};
use crate::shape::{arguments_digest, hex};
use crate::slice::Slice;

/// A decision with everything that led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Name of the tool.
    pub tool: String,
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
    /// For a denial without a forbid: the permits that came nearest, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub nearest: Vec<NearMiss>,
    /// SHA-256 of the arguments (JSON with sorted keys and without white space), in hexadecimal.
    pub arguments_sha256: String,
    /// Digest of the policy set, in hexadecimal.
    pub policy_set: String,
    /// Digest of the tool's slice, in hexadecimal; none for a tool that was not declared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slice: Option<String>,
}

/// A permit that did not match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearMiss {
    /// The permit.
    pub policy: PolicyRef,
    /// The question that it answers.
    pub question: Question,
    /// Its clauses that hold, in the order of the text.
    pub holds: Vec<String>,
    /// The first clause that does not hold.
    pub fails: String,
    /// Why it could not be evaluated, if that is why it does not hold.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}`: {}", self.tool, self.decision.outcome)?;
        if self.decision.demanded_by_declaration {
            writeln!(f, "  the tool's declaration demands the approval")?;
        }
        for policy in &self.decision.determining {
            writeln!(f, "  by {policy}")?;
        }
        if self.decision.outcome == Outcome::Deny && self.decision.determining.is_empty() {
            writeln!(f, "  no policy permits it")?;
        }
        for miss in &self.nearest {
            writeln!(f, "  nearest {} ({}):", miss.policy, miss.question)?;
            writeln!(f, "    does not hold: {}", miss.fails)?;
            if let Some(error) = &miss.error {
                writeln!(f, "    because {error}")?;
            }
        }
        for error in &self.decision.errors {
            writeln!(f, "  error: {error}")?;
        }
        if let Some(shadow) = &self.decision.shadow {
            writeln!(
                f,
                "  with the policies in log-only mode: {}",
                shadow.outcome
            )?;
            for policy in &shadow.determining {
                writeln!(f, "    by {policy}")?;
            }
        }
        writeln!(f, "  arguments sha256:{}", self.arguments_sha256)?;
        write!(f, "  policy set sha256:{}", self.policy_set)
    }
}

impl fmt::Display for PolicyRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.id)?;
        if let Some(title) = &self.title {
            write!(f, " ({title})")?;
        }
        write!(f, " at {}:{}", self.file, self.line)
    }
}

/// Who may approve calls of a tool, as the policies put it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApproverRule {
    /// The permit.
    pub policy: PolicyRef,
    /// Its principal in Cedar's words, such as `principal in Role::"finance"`; `principal` alone
    /// for anyone.
    pub who: String,
    /// True if it has clauses besides, so that it does not hold for every call.
    pub conditional: bool,
}

/// The principal of a policy in Cedar's words.
fn principal_text(body: &Template) -> String {
    use pst::EntityOrSlot::Entity;
    match &body.principal {
        PrincipalConstraint::Eq(Entity(uid)) => format!("principal == {uid}"),
        PrincipalConstraint::In(Entity(uid)) => format!("principal in {uid}"),
        PrincipalConstraint::Is(kind) => format!("principal is {kind}"),
        PrincipalConstraint::IsIn(kind, Entity(uid)) => format!("principal is {kind} in {uid}"),
        _ => "principal".to_owned(),
    }
}

fn resource_text(body: &Template) -> Option<String> {
    use pst::EntityOrSlot::Entity;
    use pst::ResourceConstraint as Of;
    match &body.resource {
        Of::Eq(Entity(uid)) => Some(format!("resource == {uid}")),
        Of::In(Entity(uid)) => Some(format!("resource in {uid}")),
        Of::Is(kind) => Some(format!("resource is {kind}")),
        Of::IsIn(kind, Entity(uid)) => Some(format!("resource is {kind} in {uid}")),
        _ => None,
    }
}

/// What must hold for a policy to match, one text for each part that is joined by `&&`.
pub(crate) fn conjuncts(body: &Template) -> Vec<String> {
    let mut parts = Vec::new();
    let principal = principal_text(body);
    if principal != "principal" {
        parts.push(principal);
    }
    parts.extend(resource_text(body));
    for clause in body.clauses() {
        match clause {
            Clause::When(expr) => split(expr, &mut parts),
            Clause::Unless(expr) => parts.push(format!("!({expr})")),
        }
    }
    parts
}

fn split(expr: &Expr, parts: &mut Vec<String>) {
    match expr {
        Expr::BinaryOp {
            op: BinaryOp::And,
            left,
            right,
        } => {
            split(left, parts);
            split(right, parts);
        }
        other => parts.push(other.to_string()),
    }
}

impl PolicySet {
    /// Decides a call and says why, down to the clause that kept the nearest permits from
    /// matching. Slower than [`decide`](Self::decide); meant for people.
    pub fn explain(&self, call: &Call<'_>) -> Explanation {
        let decision = self.decide(call);
        let by_default = decision.outcome == Outcome::Deny && decision.determining.is_empty();
        let nearest = match self.slices.get(call.tool) {
            Some(slice) if by_default => on_stack(slice, || self.nearest(slice, call)),
            _ => Vec::new(),
        };
        Explanation {
            tool: call.tool.to_owned(),
            nearest,
            arguments_sha256: arguments_digest(call.arguments),
            policy_set: hex(&self.digest),
            slice: self.slice_digest(call.tool).map(|digest| hex(&digest)),
            decision,
        }
    }

    /// Those among some people who may approve a call that has these approvals so far.
    pub fn who_may_approve<'p>(
        &self,
        call: &Call<'_>,
        people: &'p [User],
        so_far: &Approvals,
    ) -> Vec<&'p User> {
        people
            .iter()
            .filter(|person| self.may_approve(call, person, so_far).permitted)
            .collect()
    }

    /// The policies that let people approve calls of a tool, sorted by id, for a card that says
    /// who could approve. Forbids may still exclude some of them.
    pub fn approver_rules(&self, tool: &str) -> Vec<ApproverRule> {
        let Some(slice) = self.slices.get(tool) else {
            return Vec::new();
        };
        let asked = slice.asked(Question::Approve);
        self.permits(&asked.policies)
            .map(|(about, body)| ApproverRule {
                policy: about.clone(),
                who: principal_text(body),
                conditional: !body.clauses().is_empty(),
            })
            .collect()
    }

    fn permits<'a>(
        &'a self,
        of: &'a cedar_policy::PolicySet,
    ) -> impl Iterator<Item = (&'a PolicyRef, &'a Template)> {
        self.policies
            .iter()
            .filter(|(id, held)| {
                held.about.effect == Effect::Permit
                    && of.policy(&cedar_policy::PolicyId::new(id)).is_some()
            })
            .map(|(_, held)| (&held.about, &held.body))
    }

    /// The permits that came nearest to match, of both questions that could let the call run.
    fn nearest(&self, slice: &Slice, call: &Call<'_>) -> Vec<NearMiss> {
        const SHOWN: usize = 3;
        let Ok(mut prepared) = self.prepare(slice, call, &[]) else {
            return Vec::new();
        };
        let Ok(approvers) = self.add_nobodies(&mut prepared) else {
            return Vec::new();
        };
        let votes = Votes {
            approvers: &approvers,
            requested_at: call.now.div_euclid(1000),
        };
        let mut misses: Vec<(usize, NearMiss)> = Vec::new();
        for (question, votes) in [
            (Question::Unattended, None),
            (Question::Approved, Some(votes)),
        ] {
            for (policy, body) in self.permits(&slice.asked(question).policies) {
                let parts = conjuncts(body);
                let holds = |clause: &_| prepared.holds(question, votes, clause);
                if let Some((holds, fails, error)) = first_false(&parts, holds) {
                    misses.push((
                        parts.len() - holds.len(),
                        NearMiss {
                            policy: policy.clone(),
                            question,
                            holds,
                            fails,
                            error,
                        },
                    ));
                }
            }
        }
        misses.sort_by_key(|(missing, _)| *missing);
        misses
            .into_iter()
            .take(SHOWN)
            .map(|(_, miss)| miss)
            .collect()
    }
}

/// Evaluates the parts in order up to the first that does not hold.
fn first_false(
    parts: &[String],
    mut holds: impl FnMut(&Expression) -> Result<bool, String>,
) -> Option<(Vec<String>, String, Option<String>)> {
    for (index, part) in parts.iter().enumerate() {
        let error = match part.parse::<Expression>() {
            Ok(expression) => match holds(&expression) {
                Ok(true) => continue,
                Ok(false) => None,
                Err(error) => Some(error),
            },
            Err(error) => Some(error.to_string()),
        };
        let before = parts.get(..index).unwrap_or_default().to_vec();
        return Some((before, part.clone(), error));
    }
    None
}
