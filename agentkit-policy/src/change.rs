//! What would have to be different for a clause to hold, in words.

use cedar_policy::pst::{BinaryOp, Expr, UnaryOp};

/// Longest value that is shown, in characters.
const SHOWN: usize = 80;

/// What would have to be different for an expression to be `wanted`; none where that cannot be said
/// in a sentence. `value` evaluates a part of it.
pub(crate) fn change(
    expr: &Expr,
    wanted: bool,
    value: &dyn Fn(&Expr) -> Option<String>,
) -> Option<String> {
    match expr {
        Expr::UnaryOp {
            op: UnaryOp::Not,
            expr,
        } => change(expr, !wanted, value),
        Expr::BinaryOp { op, left, right } => match (op, wanted) {
            (BinaryOp::And, true) | (BinaryOp::Or, false) => {
                all(&[left, right], wanted, value, " and ")
            }
            (BinaryOp::Or, true) | (BinaryOp::And, false) => {
                all(&[left, right], wanted, value, ", or ")
            }
            _ => binary(*op, left, right, wanted, value),
        },
        Expr::HasAttr { expr, attrs } => {
            let attrs: Vec<&str> = attrs.iter().map(AsRef::as_ref).collect();
            let not = if wanted { "" } else { "not " };
            Some(format!(
                "`{expr}` would have to {not}have `{}`",
                attrs.join(".")
            ))
        }
        Expr::Like { expr: inner, .. } => {
            let not = if wanted { "" } else { "not " };
            Some(with_value(
                format!("`{expr}` would have to {not}hold"),
                inner,
                value,
            ))
        }
        Expr::GetAttr { .. } => Some(format!("`{expr}` would have to be {wanted}")),
        Expr::UnaryOp { expr: inner, .. } => Some(with_value(
            format!("`{expr}` would have to be {wanted}"),
            inner,
            value,
        )),
        Expr::Is {
            expr: inner,
            entity_type,
            in_expr: None,
        } => {
            let not = if wanted { "" } else { "not " };
            Some(format!("`{inner}` would have to {not}be a `{entity_type}`"))
        }
        _ => None,
    }
}

/// The changes of those parts that are not as wanted.
fn all(
    parts: &[&Expr],
    wanted: bool,
    value: &dyn Fn(&Expr) -> Option<String>,
    between: &str,
) -> Option<String> {
    let already = if wanted { "true" } else { "false" };
    let changes: Option<Vec<String>> = parts
        .iter()
        .filter(|part| value(part).as_deref() != Some(already))
        .map(|part| change(part, wanted, value))
        .collect();
    changes
        .filter(|changes| !changes.is_empty())
        .map(|changes| changes.join(between))
}

fn binary(
    op: BinaryOp,
    left: &Expr,
    right: &Expr,
    wanted: bool,
    value: &dyn Fn(&Expr) -> Option<String>,
) -> Option<String> {
    use BinaryOp as Op;
    // The side that a reader thinks of as the subject.
    let literal_left = matches!(left, Expr::Literal(_) | Expr::Set(_));
    let relation =
        match (op, wanted) {
            (Op::Eq, true) | (Op::NotEq, false) => "be",
            (Op::Eq, false) | (Op::NotEq, true) => "be other than",
            (Op::Less | Op::DecimalLessThan, true)
            | (Op::GreaterEq | Op::DecimalGreaterEq, false) => "be less than",
            (Op::LessEq | Op::DecimalLessEq, true) | (Op::Greater | Op::DecimalGreater, false) => {
                "be at most"
            }
            (Op::Greater | Op::DecimalGreater, true) | (Op::LessEq | Op::DecimalLessEq, false) => {
                "be more than"
            }
            (Op::GreaterEq | Op::DecimalGreaterEq, true)
            | (Op::Less | Op::DecimalLessThan, false) => "be at least",
            (Op::In | Op::IsInRange, true) => "be in",
            (Op::In | Op::IsInRange, false) => "not be in",
            (Op::Contains, wanted) if literal_left => {
                let relation = if wanted { "be one of" } else { "be none of" };
                return Some(with_value(
                    format!("`{right}` would have to {relation} {left}"),
                    right,
                    value,
                ));
            }
            (Op::Contains, true) => "contain",
            (Op::Contains, false) => "not contain",
            (Op::ContainsAll, true) => "contain all of",
            (Op::ContainsAll, false) => "lack one of",
            (Op::ContainsAny, true) => "contain one of",
            (Op::ContainsAny, false) => "contain none of",
            (Op::HasTag, true) => "have the key",
            (Op::HasTag, false) => "not have the key",
            _ => return None,
        };
    let turned = literal_left.then(|| turn(relation)).flatten();
    let (subject, relation, object) = match turned {
        Some(relation) => (right, relation, left),
        None => (left, relation, right),
    };
    let sentence = format!(
        "`{subject}` would have to {relation} {}",
        operand(object, value)
    );
    Some(with_value(sentence, subject, value))
}

/// The relation seen from the other side.
fn turn(relation: &str) -> Option<&'static str> {
    Some(match relation {
        "be" => "be",
        "be other than" => "be other than",
        "be less than" => "be more than",
        "be at most" => "be at least",
        "be more than" => "be less than",
        "be at least" => "be at most",
        _ => return None,
    })
}

/// What something is compared with: as it is written, and its value where that is not plain.
fn operand(expr: &Expr, value: &dyn Fn(&Expr) -> Option<String>) -> String {
    match expr {
        Expr::Literal(_) | Expr::Set(_) => expr.to_string(),
        other => match value(other) {
            Some(value) => format!("`{other}`, which is {}", cut(&value)),
            None => format!("`{other}`"),
        },
    }
}

fn with_value(sentence: String, subject: &Expr, value: &dyn Fn(&Expr) -> Option<String>) -> String {
    match value(subject) {
        Some(value) => format!("{sentence}; it is {}", cut(&value)),
        None => sentence,
    }
}

fn cut(value: &str) -> String {
    let mut shown: String = value.chars().take(SHOWN).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    shown
}
