//! Which facts of `context.session` a policy reads.

use std::collections::BTreeSet;

use cedar_policy::pst::{Clause, Expr, Template, Var};

/// The facts that a policy reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    /// The policy handles the session, or the context, as a whole: it may read anything.
    pub(crate) everything: bool,
    /// Names as in `id` and `this.admitted`; `this` alone for all of it.
    pub(crate) names: BTreeSet<String>,
}

impl Mentions {
    pub(crate) fn of(body: &Template) -> Self {
        body.clauses()
            .iter()
            .map(|clause| match clause {
                Clause::When(expr) | Clause::Unless(expr) => of_expr(expr),
            })
            .fold(Self::default(), Self::and)
    }

    pub(crate) fn and(mut self, other: Self) -> Self {
        self.everything |= other.everything;
        self.names.extend(other.names);
        self
    }

    /// Whether a fact is among those read.
    pub(crate) fn hold(&self, name: &str) -> bool {
        self.everything
            || self.names.contains(name)
            || name.starts_with("this.") && self.names.contains("this")
    }

    fn everything() -> Self {
        Self {
            everything: true,
            names: BTreeSet::new(),
        }
    }

    fn of_path(path: &[String]) -> Self {
        match path {
            [first, ..] if first != "session" => Self::default(),
            [] | [_] => Self::everything(),
            [_, name, inner, ..] if name == "this" => Self::named(format!("this.{inner}")),
            [_, name, ..] => Self::named(name.clone()),
        }
    }

    fn named(name: String) -> Self {
        Self {
            everything: false,
            names: BTreeSet::from([name]),
        }
    }
}

fn of_expr(expr: &Expr) -> Mentions {
    expr.reduce(
        &|expr| read_path(expr).map(|path| Mentions::of_path(&path)),
        &Mentions::and,
        Mentions::default(),
    )
}

/// The attributes by which an expression goes into the context; none for any other expression.
fn read_path(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Var(Var::Context) => Some(Vec::new()),
        Expr::GetAttr { expr, attr } => {
            let mut path = read_path(expr)?;
            path.push(attr.to_string());
            Some(path)
        }
        Expr::HasAttr { expr, attrs } => {
            let mut path = read_path(expr)?;
            path.extend(attrs.iter().map(ToString::to_string));
            Some(path)
        }
        _ => None,
    }
}
