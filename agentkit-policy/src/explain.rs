//! Why a call was decided as it was, as data and as text.

use std::fmt;

use cedar_policy::Expression;
use cedar_policy::pst::{self, BinaryOp, Clause, Expr, PrincipalConstraint};
use serde::{Deserialize, Serialize};

use crate::decision::{Decision, Outcome, PolicyRef, Question};

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
pub(crate) fn principal_text(body: &pst::Template) -> String {
    use pst::EntityOrSlot::Entity;
    match &body.principal {
        PrincipalConstraint::Eq(Entity(uid)) => format!("principal == {uid}"),
        PrincipalConstraint::In(Entity(uid)) => format!("principal in {uid}"),
        PrincipalConstraint::Is(kind) => format!("principal is {kind}"),
        PrincipalConstraint::IsIn(kind, Entity(uid)) => format!("principal is {kind} in {uid}"),
        _ => "principal".to_owned(),
    }
}

fn resource_text(body: &pst::Template) -> Option<String> {
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
pub(crate) fn conjuncts(body: &pst::Template) -> Vec<String> {
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

/// Evaluates the parts in order up to the first that does not hold.
pub(crate) fn first_false(
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
