//! Why a call was decided as it was, as data and as text.

use std::fmt;

use cedar_policy::Expression;
use cedar_policy::pst::{self, BinaryOp, Clause, Expr, PrincipalConstraint, Template};
use serde::{Deserialize, Serialize};

use crate::ask::Votes;
use crate::call::{Approvals, Call, User};
use crate::change::change;
use crate::decision::{Decision, Effect, Outcome, PolicyRef, Question};
use crate::index::Policies;
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
    /// For a denial by forbids: what made them match.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub blocking: Vec<Blocking>,
    /// For a call that needs approval: whom the policies let approve.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub approvers: Vec<ApproverRule>,
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
    /// What would have to be different for that clause to hold, where it can be said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<String>,
}

/// A forbid that matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocking {
    /// The forbid.
    pub policy: PolicyRef,
    /// Its clauses, all of which hold; none for a forbid without conditions.
    pub clauses: Vec<String>,
    /// Changes any one of which would keep it from matching, where they can be said.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changes: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}`: {}", self.tool, self.decision.outcome)?;
        if self.decision.demanded_by_declaration {
            writeln!(f, "  the tool's declaration demands the approval")?;
        }
        for policy in &self.decision.determining {
            writeln!(f, "  by {policy}")?;
            for (what, note) in [
                ("why", &policy.why),
                ("owner", &policy.owner),
                ("severity", &policy.severity),
            ] {
                if let Some(note) = note {
                    writeln!(f, "    {what}: {note}")?;
                }
            }
            for blocking in self.blocking.iter().filter(|b| b.policy == *policy) {
                for clause in &blocking.clauses {
                    writeln!(f, "    holds: {clause}")?;
                }
                for change in &blocking.changes {
                    writeln!(f, "    it would not forbid the call if: {change}")?;
                }
            }
        }
        if self.decision.outcome == Outcome::Deny
            && self.decision.determining.is_empty()
            && self.decision.errors.is_empty()
        {
            writeln!(f, "  no policy permits it")?;
        }
        for miss in &self.nearest {
            writeln!(f, "  nearest {} ({}):", miss.policy, miss.question)?;
            for clause in &miss.holds {
                writeln!(f, "    holds: {clause}")?;
            }
            writeln!(f, "    does not hold: {}", miss.fails)?;
            if let Some(error) = &miss.error {
                writeln!(f, "    because {error}")?;
            }
            if let Some(change) = &miss.change {
                writeln!(f, "    to change: {change}")?;
            }
        }
        for rule in &self.approvers {
            let more = if rule.conditional {
                ", under conditions"
            } else {
                ""
            };
            writeln!(f, "  may approve: {}{more}, by {}", rule.who, rule.policy)?;
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
pub(crate) fn principal_text(body: &Template) -> String {
    use pst::EntityOrSlot::Entity;
    match &body.principal {
        PrincipalConstraint::Eq(Entity(uid)) => format!("principal == {uid}"),
        PrincipalConstraint::In(Entity(uid)) => format!("principal in {uid}"),
        PrincipalConstraint::Is(kind) => format!("principal is {kind}"),
        PrincipalConstraint::IsIn(kind, Entity(uid)) => format!("principal is {kind} in {uid}"),
        _ => "principal".to_owned(),
    }
}

pub(crate) fn resource_text(body: &Template) -> Option<String> {
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

/// A part of a policy that must hold for it to match.
struct Part {
    text: String,
    /// The expression, and what it must evaluate to; none for a part of the scope.
    expr: Option<(Expr, bool)>,
}

impl Part {
    /// What would have to be different for it to hold, or not to.
    fn change(&self, wanted: bool, value: &dyn Fn(&Expr) -> Option<String>) -> Option<String> {
        match &self.expr {
            Some((expr, positive)) => change(expr, wanted == *positive, value),
            None => {
                let not = if wanted { "" } else { "not " };
                let (subject, relation) = self.text.split_once(' ')?;
                let subject = match subject {
                    "principal" => "the person for whom the agent acts",
                    _ => "the agent",
                };
                let relation = relation
                    .strip_prefix("== ")
                    .map_or_else(|| relation.to_owned(), str::to_owned);
                let relation = relation.strip_prefix("is ").unwrap_or(&relation);
                Some(format!("{subject} would have to {not}be {relation}"))
            }
        }
    }
}

/// What must hold for a policy to match, one text for each part that is joined by `&&`.
pub(crate) fn conjuncts(body: &Template) -> Vec<String> {
    parts(body).into_iter().map(|part| part.text).collect()
}

fn parts(body: &Template) -> Vec<Part> {
    let scope = |text: String| Part { text, expr: None };
    let mut parts = Vec::new();
    let principal = principal_text(body);
    if principal != "principal" {
        parts.push(scope(principal));
    }
    parts.extend(resource_text(body).map(scope));
    for clause in body.clauses() {
        match clause {
            Clause::When(expr) => split(expr, &mut parts),
            Clause::Unless(expr) => parts.push(Part {
                text: format!("!({expr})"),
                expr: Some(((**expr).clone(), false)),
            }),
        }
    }
    parts
}

fn split(expr: &Expr, parts: &mut Vec<Part>) {
    match expr {
        Expr::BinaryOp {
            op: BinaryOp::And,
            left,
            right,
        } => {
            split(left, parts);
            split(right, parts);
        }
        other => parts.push(Part {
            text: other.to_string(),
            expr: Some((other.clone(), true)),
        }),
    }
}

impl PolicySet {
    /// Decides a call and says why, down to the clause that kept the nearest permits from
    /// matching, and what would have to change. Slower than [`decide`](Self::decide); meant for
    /// people.
    pub fn explain(&self, call: &Call<'_>) -> Explanation {
        let decision = self.decide(call);
        let denied = decision.outcome == Outcome::Deny;
        let asks = matches!(decision.outcome, Outcome::RequireApproval { .. });
        let (nearest, blocking) = match self.slices.get(call.tool) {
            Some(slice) if denied && decision.determining.is_empty() => {
                (on_stack(slice, || self.nearest(slice, call)), Vec::new())
            }
            Some(slice) if denied => {
                let blocking = on_stack(slice, || self.blocking(slice, call, &decision));
                (Vec::new(), blocking)
            }
            _ => (Vec::new(), Vec::new()),
        };
        Explanation {
            tool: call.tool.to_owned(),
            nearest,
            blocking,
            approvers: if asks {
                self.approver_rules(call.tool)
            } else {
                Vec::new()
            },
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
            .into_iter()
            .map(|(about, body)| ApproverRule {
                policy: about.clone(),
                who: principal_text(body),
                conditional: !body.clauses().is_empty(),
            })
            .collect()
    }

    /// The permits among some policies, sorted by id.
    fn permits(&self, of: &Policies) -> Vec<(&PolicyRef, &Template)> {
        let mut permits: Vec<_> = of
            .policies()
            .filter_map(|policy| self.policies.get(&policy.id().to_string()))
            .filter(|held| held.about.effect == Effect::Permit)
            .map(|held| (&held.about, &held.body))
            .collect();
        permits.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        permits
    }

    /// The permits that came nearest to match, of both questions that could let the call run.
    fn nearest(&self, slice: &Slice, call: &Call<'_>) -> Vec<NearMiss> {
        const SHOWN: usize = 3;
        let Ok(prepared) = self.prepare(slice, call, &[]) else {
            return Vec::new();
        };
        let votes = Votes {
            approvers: &self.nobodies,
            requested_at: call.now.div_euclid(1000),
        };
        let mut misses: Vec<(usize, NearMiss)> = Vec::new();
        for (question, votes) in [
            (Question::Unattended, None),
            (Question::Approved, Some(votes)),
        ] {
            let value = |expr: &Expr| {
                let part = expr.to_string().parse::<Expression>().ok()?;
                prepared.value(question, votes, &part)
            };
            for (policy, body) in self.permits(&slice.asked(question).policies) {
                let parts = parts(body);
                let holds = |clause: &_| prepared.holds(question, votes, clause);
                if let Some((index, error)) = first_false(&parts, holds) {
                    let text = |part: &Part| part.text.clone();
                    let failing = parts.get(index);
                    misses.push((
                        parts.len() - index,
                        NearMiss {
                            policy: policy.clone(),
                            question,
                            holds: parts.iter().take(index).map(text).collect(),
                            fails: failing.map(text).unwrap_or_default(),
                            change: match error {
                                Some(_) => None,
                                None => failing.and_then(|part| part.change(true, &value)),
                            },
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

    /// The forbids that brought a denial about, and what would keep them from matching.
    fn blocking(&self, slice: &Slice, call: &Call<'_>, decision: &Decision) -> Vec<Blocking> {
        let Ok(prepared) = self.prepare(slice, call, &[]) else {
            return Vec::new();
        };
        let votes = Votes {
            approvers: &self.nobodies,
            requested_at: call.now.div_euclid(1000),
        };
        let determining = decision.determining.iter();
        determining
            .filter_map(|about| self.policies.get(&about.id))
            .map(|held| {
                let id = cedar_policy::PolicyId::new(&held.about.id);
                let unattended = &slice.asked(Question::Unattended).policies;
                let (question, votes) = match unattended.policy(&id) {
                    Some(_) => (Question::Unattended, None),
                    None => (Question::Approved, Some(votes)),
                };
                let value = |expr: &Expr| {
                    let part = expr.to_string().parse::<Expression>().ok()?;
                    prepared.value(question, votes, &part)
                };
                let parts = parts(&held.body);
                Blocking {
                    policy: held.about.clone(),
                    changes: parts
                        .iter()
                        .filter_map(|part| part.change(false, &value))
                        .collect(),
                    clauses: parts.into_iter().map(|part| part.text).collect(),
                }
            })
            .collect()
    }
}

/// Evaluates the parts in order up to the first that does not hold.
fn first_false(
    parts: &[Part],
    mut holds: impl FnMut(&Expression) -> Result<bool, String>,
) -> Option<(usize, Option<String>)> {
    for (index, part) in parts.iter().enumerate() {
        let error = match part.text.parse::<Expression>() {
            Ok(expression) => match holds(&expression) {
                Ok(true) => continue,
                Ok(false) => None,
                Err(error) => Some(error),
            },
            Err(error) => Some(error.to_string()),
        };
        return Some((index, error));
    }
    None
}
