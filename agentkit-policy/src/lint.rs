//! What does not stand in the way of a load and is still worth a look.

use std::collections::BTreeMap;

use cedar_policy::pst::{BinaryOp, Clause, Expr, UnaryOp};

use crate::answering::Answering;
use crate::decision::Question;
use crate::explain::conjuncts;
use crate::load_error::Finding;
use crate::policy::{LoadedPolicy, Scope};
use crate::shape::Shape;
use crate::tool::Tool;

/// All warnings about a set.
pub(crate) fn warnings(
    tools: &[Tool],
    policies: &[LoadedPolicy],
    answering: &Answering<'_>,
) -> Vec<Finding> {
    let mut warnings = Vec::new();
    for tool in tools {
        approvable(tool, answering, &mut warnings);
        float_money(tool, &tool.input, &mut Vec::new(), &mut warnings);
    }
    for policy in policies {
        if policy.is_forbid()
            && policy
                .body
                .clauses()
                .iter()
                .any(|c| can_overflow(of_clause(c)))
        {
            warnings.push(
                policy
                    .finding("the forbid computes, and denies every call on which that overflows")
                    .suggest("compare with constants, or bound the values first"),
            );
        }
        if is_blanket(policy, tools) {
            warnings.push(
                policy
                    .finding("the permit lets anyone run the tool without conditions or approval")
                    .suggest("name a role, add a clause, or ask for approval"),
            );
        }
    }
    warnings
}

/// Policies that never take part in anything: an error in what they are meant to say, most likely.
pub(crate) fn without_effect(
    policies: &[LoadedPolicy],
    impossible: &BTreeMap<String, (usize, usize)>,
) -> Vec<Finding> {
    let mut warnings = Vec::new();
    for policy in policies {
        match impossible.get(policy.id()) {
            None => warnings.push(
                policy
                    .finding("the policy applies to no declared tool, so nothing in it was checked")
                    .suggest("name an action of a tool, or a group that holds one"),
            ),
            Some((slices, never)) if slices == never => warnings.push(
                policy
                    .finding("the policy can never match, whatever the call")
                    .suggest("look for a clause that contradicts another one, or the schema"),
            ),
            Some(_) => {}
        }
    }
    warnings
}

fn of_clause(clause: &Clause) -> &Expr {
    match clause {
        Clause::When(expr) | Clause::Unless(expr) => expr,
    }
}

fn can_overflow(expr: &Expr) -> bool {
    use BinaryOp::{Add, DurationSince, Mul, Offset, Sub};
    let computes = |expr: &Expr| match expr {
        Expr::BinaryOp {
            op: Add | Sub | Mul | Offset | DurationSince,
            ..
        }
        | Expr::UnaryOp {
            op: UnaryOp::Neg, ..
        } => Some(true),
        _ => None,
    };
    expr.reduce(&computes, &|a, b| a || b, false)
}

/// A permit for anyone to run unattended what is not declared to be read-only.
fn is_blanket(policy: &LoadedPolicy, tools: &[Tool]) -> bool {
    let Scope::Permit {
        question: Question::Unattended,
        ..
    } = policy.scope
    else {
        return false;
    };
    conjuncts(&policy.body).is_empty()
        && !policy.log_only
        && tools.iter().any(|tool| {
            !tool.declaration.read_only
                && policy.answers(
                    Question::Unattended,
                    tool.name(),
                    &tool.ancestors(Question::Unattended),
                )
        })
}

/// Arguments that are named like money and typed as floats.
fn float_money(tool: &Tool, shape: &Shape, path: &mut Vec<String>, warnings: &mut Vec<Finding>) {
    const MONEY: [&str; 8] = [
        "amount", "price", "cost", "total", "balance", "fee", "cents", "payment",
    ];
    if shape.is_float() {
        let named = path.last().map(|name| name.to_lowercase());
        if named.is_some_and(|name| MONEY.iter().any(|word| name.contains(word))) {
            warnings.push(Finding {
                property: Some(path.join(".")),
                ..Finding::about("the argument looks like money and is a float")
                    .suggest("use an integer of the smallest unit, or a string of format `decimal`")
                    .tool_named(tool.name())
            });
        }
    }
    for (name, inner) in shape.children() {
        path.push(name.to_owned());
        float_money(tool, inner, path, warnings);
        path.pop();
    }
}

/// A tool whose calls can be made to wait although nobody can end the wait.
fn approvable(tool: &Tool, answering: &Answering<'_>, warnings: &mut Vec<Finding>) {
    let permits = |question: Question| {
        let policies = answering.of(tool, question);
        policies
            .iter()
            .any(|policy| !policy.log_only && !policy.is_forbid())
    };
    if permits(Question::Approve) {
        return;
    }
    let action = Question::Approve.action(tool.name());
    let remedy = format!("permit someone `Action::\"{action}\"`");
    if tool.declaration.require_approval {
        warnings.push(
            Finding::about("the tool demands approval and no policy lets anyone approve")
                .suggest(remedy)
                .tool_named(tool.name()),
        );
    } else if permits(Question::Approved) {
        warnings.push(
            Finding::about("policies demand approval and no policy lets anyone approve")
                .suggest(remedy)
                .tool_named(tool.name()),
        );
    }
}
