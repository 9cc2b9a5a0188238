//! Small changes of one policy, each of which a good suite notices.

use std::collections::HashMap;
use std::sync::Arc;

use cedar_policy::pst::{
    ActionConstraint, BinaryOp, Clause, Effect, EntityOrSlot, EntityUID, Expr, Literal,
    PrincipalConstraint, ResourceConstraint, Template, UnaryOp,
};

use crate::decision::Question;

use super::time::span;

/// A policy with one change.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) policy: String,
    /// `before => after`; the name by which test files refer to the mutant.
    pub(crate) change: String,
    /// The changed policy; none where it is removed.
    pub(crate) body: Option<Template>,
}

/// All mutants of a policy. `tools` are the names of the declared tools. `approvable` says that
/// approvals can let some call run about which the policy decides; where none can, it makes no
/// difference whether a forbid covers the question with approvals too.
pub(crate) fn mutants(id: &str, body: &Template, tools: &[&str], approvable: bool) -> Vec<Mutant> {
    let mut made: Vec<(String, Option<Template>)> = vec![("policy => nothing".to_owned(), None)];
    made.push(effect(body));
    made.extend(principals(body));
    made.extend(resources(body));
    made.extend(actions(body, tools, approvable));
    made.extend(clauses(body));
    let mut seen: HashMap<String, u32> = HashMap::new();
    made.into_iter()
        .map(|(change, body)| {
            let change = change.split_whitespace().collect::<Vec<_>>().join(" ");
            let times = seen.entry(change.clone()).or_default();
            *times += 1;
            Mutant {
                policy: id.to_owned(),
                change: if *times > 1 {
                    format!("{change} (place {times})")
                } else {
                    change
                },
                body,
            }
        })
        .collect()
}

type Made = (String, Option<Template>);

fn effect(body: &Template) -> Made {
    let mut changed = body.clone();
    changed.effect = match body.effect {
        Effect::Permit => Effect::Forbid,
        Effect::Forbid => Effect::Permit,
    };
    (
        format!("{} => {}", body.effect, changed.effect),
        Some(changed),
    )
}

/// The same kind of entity under another id.
fn other(of: &EntityOrSlot) -> Option<EntityOrSlot> {
    match of {
        EntityOrSlot::Entity(uid) => Some(EntityOrSlot::Entity(other_uid(uid))),
        EntityOrSlot::Slot(_) => None,
    }
}

fn other_uid(uid: &EntityUID) -> EntityUID {
    EntityUID {
        ty: uid.ty.clone(),
        eid: format!("{}~", uid.eid).into(),
    }
}

fn principals(body: &Template) -> Vec<Made> {
    use PrincipalConstraint as Of;
    let variants = match &body.principal {
        Of::Any => Vec::new(),
        Of::Eq(of) => vec![Some(Of::Any), other(of).map(Of::Eq)],
        Of::In(of) => vec![Some(Of::Any), other(of).map(Of::In)],
        Of::Is(_) => vec![Some(Of::Any)],
        Of::IsIn(kind, of) => vec![
            Some(Of::Is(kind.clone())),
            other(of).map(|of| Of::IsIn(kind.clone(), of)),
        ],
    };
    let text = crate::explain::principal_text;
    variants
        .into_iter()
        .flatten()
        .map(|principal| {
            let mut changed = body.clone();
            changed.principal = principal;
            (
                format!("{} => {}", text(body), text(&changed)),
                Some(changed),
            )
        })
        .collect()
}

fn resources(body: &Template) -> Vec<Made> {
    use ResourceConstraint as Of;
    let variants = match &body.resource {
        Of::Any => Vec::new(),
        Of::Eq(of) => vec![Some(Of::Any), other(of).map(Of::Eq)],
        Of::In(of) => vec![Some(Of::Any), other(of).map(Of::In)],
        Of::Is(_) => vec![Some(Of::Any)],
        Of::IsIn(kind, of) => vec![
            Some(Of::Is(kind.clone())),
            other(of).map(|of| Of::IsIn(kind.clone(), of)),
        ],
    };
    let text = |body: &Template| {
        crate::explain::resource_text(body).unwrap_or_else(|| "resource".to_owned())
    };
    variants
        .into_iter()
        .flatten()
        .map(|resource| {
            let mut changed = body.clone();
            changed.resource = resource;
            (
                format!("{} => {}", text(body), text(&changed)),
                Some(changed),
            )
        })
        .collect()
}

fn actions(body: &Template, tools: &[&str], approvable: bool) -> Vec<Made> {
    use ActionConstraint as Of;
    let mut variants = Vec::new();
    match &body.action {
        Of::Any => {}
        Of::Eq(uid) => {
            variants.extend(other_questions(uid, tools).into_iter().map(Of::Eq));
            if body.effect == Effect::Forbid && approvable {
                variants.push(Of::In(vec![uid.clone()]));
            }
        }
        Of::In(uids) => {
            if let [uid] = uids.as_slice() {
                if approvable {
                    variants.push(Of::Eq(uid.clone()));
                }
                variants.extend(
                    other_questions(uid, tools)
                        .into_iter()
                        .map(|u| Of::In(vec![u])),
                );
            }
            for left_out in 0..uids.len() {
                let mut fewer = uids.clone();
                fewer.remove(left_out);
                if !fewer.is_empty() {
                    variants.push(Of::In(fewer));
                }
            }
        }
    }
    variants
        .into_iter()
        .map(|action| {
            let mut changed = body.clone();
            changed.action = action;
            (
                format!(
                    "{} => {}",
                    action_text(&body.action),
                    action_text(&changed.action)
                ),
                Some(changed),
            )
        })
        .collect()
}

fn action_text(of: &ActionConstraint) -> String {
    match of {
        ActionConstraint::Any => "action".to_owned(),
        ActionConstraint::Eq(uid) => format!("action == {uid}"),
        ActionConstraint::In(uids) => {
            let names: Vec<String> = uids.iter().map(ToString::to_string).collect();
            format!("action in [{}]", names.join(", "))
        }
    }
}

/// The action that puts another question about the same tool: the approval falls away, say.
fn other_questions(uid: &EntityUID, tools: &[&str]) -> Vec<EntityUID> {
    let Some((tool, own)) = tools.iter().find_map(|tool| {
        let own = Question::ALL
            .into_iter()
            .find(|q| q.action(tool) == uid.eid.as_str())?;
        Some((tool, own))
    }) else {
        return Vec::new();
    };
    Question::ALL
        .into_iter()
        .filter(|question| *question != own)
        .map(|question| EntityUID {
            ty: uid.ty.clone(),
            eid: question.action(tool).into(),
        })
        .collect()
}

fn clauses(body: &Template) -> Vec<Made> {
    let all = body.clauses();
    let mut made = Vec::new();
    let with = |index: usize, clause: Option<Clause>| -> Option<Template> {
        let mut clauses = all.clone();
        match clause {
            Some(clause) => *clauses.get_mut(index)? = clause,
            None => {
                clauses.remove(index);
            }
        }
        body.clone().try_with_clauses(clauses).ok()
    };
    let mut push = |change: String, body: Option<Template>| {
        if let Some(body) = body {
            made.push((change, Some(body)));
        }
    };
    for (index, clause) in all.iter().enumerate() {
        push(format!("{clause} => nothing"), with(index, None));
        let (Clause::When(expr) | Clause::Unless(expr)) = clause;
        let again = |expr: Expr| match clause {
            Clause::When(_) => Clause::When(Arc::new(expr)),
            Clause::Unless(_) => Clause::Unless(Arc::new(expr)),
        };
        let flipped = match clause {
            Clause::When(expr) => Clause::Unless(expr.clone()),
            Clause::Unless(expr) => Clause::When(expr.clone()),
        };
        push(format!("{clause} => {flipped}"), with(index, Some(flipped)));
        for (before, after, changed) in variants(expr) {
            push(
                format!("{before} => {after}"),
                with(index, Some(again(changed))),
            );
        }
    }
    made
}

/// Before and after, in words, and the whole expression with the change.
type Variant = (String, String, Expr);

fn variants(expr: &Expr) -> Vec<Variant> {
    let mut all: Vec<Variant> = local(expr)
        .into_iter()
        .map(|changed| (expr.to_string(), changed.to_string(), changed))
        .collect();
    if is_constructor(expr) {
        return all;
    }
    // Below a comparison the change is told as one of the comparison, or `5 => 6` could be any.
    let told_here = !matches!(
        expr,
        Expr::BinaryOp {
            op: BinaryOp::And | BinaryOp::Or,
            ..
        } | Expr::UnaryOp {
            op: UnaryOp::Not,
            ..
        } | Expr::IfThenElse { .. }
    );
    for (index, child) in children(expr).into_iter().enumerate() {
        for (before, after, changed) in variants(child) {
            let whole = with_child(expr, index, Arc::new(changed));
            all.push(if told_here {
                (expr.to_string(), whole.to_string(), whole)
            } else {
                (before, after, whole)
            });
        }
    }
    all
}

fn is_constructor(expr: &Expr) -> bool {
    use UnaryOp::{Datetime, Decimal, Duration, Ip};
    matches!(
        expr,
        Expr::UnaryOp {
            op: Datetime | Decimal | Duration | Ip,
            ..
        }
    )
}

fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::UnaryOp { expr, .. }
        | Expr::GetAttr { expr, .. }
        | Expr::HasAttr { expr, .. }
        | Expr::Like { expr, .. } => vec![expr],
        Expr::BinaryOp { left, right, .. } => vec![left, right],
        Expr::Is { expr, in_expr, .. } => {
            std::iter::once(&**expr).chain(in_expr.as_deref()).collect()
        }
        Expr::IfThenElse {
            cond,
            then_expr,
            else_expr,
        } => vec![cond, then_expr, else_expr],
        Expr::Set(items) => items.iter().map(|item| &**item).collect(),
        Expr::Record(items) => items.values().map(|item| &**item).collect(),
        _ => Vec::new(),
    }
}

fn with_child(expr: &Expr, index: usize, child: Arc<Expr>) -> Expr {
    let mut whole = expr.clone();
    let slot = match &mut whole {
        Expr::UnaryOp { expr, .. }
        | Expr::GetAttr { expr, .. }
        | Expr::HasAttr { expr, .. }
        | Expr::Like { expr, .. } => Some(expr),
        Expr::BinaryOp { left, right, .. } => Some(if index == 0 { left } else { right }),
        Expr::Is { expr, in_expr, .. } => {
            if index == 0 {
                Some(expr)
            } else {
                in_expr.as_mut()
            }
        }
        Expr::IfThenElse {
            cond,
            then_expr,
            else_expr,
        } => Some(match index {
            0 => cond,
            1 => then_expr,
            _ => else_expr,
        }),
        Expr::Set(items) => items.get_mut(index),
        Expr::Record(items) => items.values_mut().nth(index),
        _ => None,
    };
    if let Some(slot) = slot {
        *slot = child;
    }
    whole
}

/// What an expression may be mistaken for, at its root.
fn local(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::BinaryOp { op, left, right } => binary(*op, left, right),
        Expr::UnaryOp {
            op: UnaryOp::Not | UnaryOp::Neg,
            expr,
        } => vec![(**expr).clone()],
        Expr::UnaryOp { op, expr } => constants(*op, expr),
        Expr::Literal(literal) => literals(literal),
        Expr::Like { .. } | Expr::Is { .. } => vec![not(expr)],
        Expr::IfThenElse {
            then_expr,
            else_expr,
            ..
        } => {
            vec![(**then_expr).clone(), (**else_expr).clone()]
        }
        Expr::Set(items) => (0..items.len())
            .map(|left_out| {
                let mut fewer = items.clone();
                fewer.remove(left_out);
                Expr::Set(fewer)
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn not(expr: &Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOp::Not,
        expr: Arc::new(expr.clone()),
    }
}

fn binary(op: BinaryOp, left: &Arc<Expr>, right: &Arc<Expr>) -> Vec<Expr> {
    use BinaryOp as Op;
    let with = |op: Op| {
        vec![Expr::BinaryOp {
            op,
            left: left.clone(),
            right: right.clone(),
        }]
    };
    match op {
        Op::And | Op::Or => {
            let swapped = if op == Op::And { Op::Or } else { Op::And };
            let mut all = vec![(**left).clone(), (**right).clone()];
            all.extend(with(swapped));
            all
        }
        Op::Less => with(Op::LessEq),
        Op::LessEq => with(Op::Less),
        Op::Greater => with(Op::GreaterEq),
        Op::GreaterEq => with(Op::Greater),
        Op::Eq => with(Op::NotEq),
        Op::NotEq => with(Op::Eq),
        Op::DecimalLessThan => with(Op::DecimalLessEq),
        Op::DecimalLessEq => with(Op::DecimalLessThan),
        Op::DecimalGreater => with(Op::DecimalGreaterEq),
        Op::DecimalGreaterEq => with(Op::DecimalGreater),
        Op::Add => with(Op::Sub),
        Op::Sub | Op::Mul => with(Op::Add),
        Op::ContainsAll => with(Op::ContainsAny),
        Op::ContainsAny => with(Op::ContainsAll),
        Op::In | Op::Contains | Op::HasTag | Op::IsInRange => with(op).iter().map(not).collect(),
        _ => Vec::new(),
    }
}

fn literals(literal: &Literal) -> Vec<Expr> {
    let all = match literal {
        Literal::Bool(value) => vec![Literal::Bool(!value)],
        Literal::Long(value) => [value.checked_add(1), value.checked_sub(1)]
            .into_iter()
            .flatten()
            .map(Literal::Long)
            .collect(),
        Literal::String(text) => vec![Literal::String(format!("{text}~").into())],
        Literal::EntityUID(uid) => vec![Literal::EntityUID(other_uid(uid))],
        _ => Vec::new(),
    };
    all.into_iter().map(Expr::Literal).collect()
}

/// The neighbours of `duration("24h")` and its like: one step to either side.
fn constants(op: UnaryOp, of: &Arc<Expr>) -> Vec<Expr> {
    let Expr::Literal(Literal::String(text)) = &**of else {
        return Vec::new();
    };
    let texts: Vec<String> = match op {
        UnaryOp::Duration => match span(text.strip_prefix('-').unwrap_or(text)) {
            Some(micros) => {
                let sign = if text.starts_with('-') { -1 } else { 1 };
                let millis = sign * (micros / 1000);
                vec![format!("{}ms", millis + 1), format!("{}ms", millis - 1)]
            }
            None => Vec::new(),
        },
        UnaryOp::Decimal => decimal_neighbours(text),
        UnaryOp::Datetime => date_neighbours(text),
        UnaryOp::Ip => vec!["192.0.2.255".to_owned()],
        _ => Vec::new(),
    };
    texts
        .into_iter()
        .map(|text| Expr::UnaryOp {
            op,
            expr: Arc::new(Expr::Literal(Literal::String(text.into()))),
        })
        .collect()
}

/// Cedar's decimals have four digits after the point.
fn decimal_neighbours(text: &str) -> Vec<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let Some((whole, fraction)) = digits.split_once('.') else {
        return Vec::new();
    };
    let Ok(units) = format!("{whole}{fraction:0<4}").parse::<i64>() else {
        return Vec::new();
    };
    [sign * units + 1, sign * units - 1]
        .into_iter()
        .map(|units| {
            let minus = if units < 0 { "-" } else { "" };
            let size = units.unsigned_abs();
            format!("{minus}{}.{:04}", size / 10_000, size % 10_000)
        })
        .collect()
}

fn date_neighbours(text: &str) -> Vec<String> {
    let full = if text.contains('T') {
        text.to_owned()
    } else {
        format!("{text}T00:00:00Z")
    };
    let Ok(date) = chrono::DateTime::parse_from_rfc3339(&full) else {
        return Vec::new();
    };
    [1, -1]
        .into_iter()
        .filter_map(|step| date.timestamp_millis().checked_add(step))
        .filter_map(crate::shape::datetime_text)
        .collect()
}
