//! What must hold for every call, whatever its arguments: claims that a solver can prove.

use crate::decision::Question;
use crate::tool::nearest;

use super::document::{Node, Place, Reader};

/// A claim about every call of some tools.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "proofs"),
    allow(dead_code, reason = "only the prover reads it")
)]
pub(crate) struct Invariant {
    pub(crate) name: String,
    pub(crate) at: Place,
    /// Names of tools; empty for all of them.
    pub(crate) tools: Vec<String>,
    pub(crate) question: Question,
    pub(crate) claim: Claim,
}

/// The claim, with the condition as a Cedar expression.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "proofs"),
    allow(dead_code, reason = "only the prover reads it")
)]
pub(crate) enum Claim {
    /// The question is never answered with yes where the condition holds.
    Never(String),
    /// It is always answered with yes where the condition holds.
    Always(String),
}

const FIELDS: [&str; 5] = ["name", "call", "question", "never", "always"];

pub(crate) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Invariant> {
    let fields = reader.fields("an invariant", node, &FIELDS);
    let Some(name) = fields.get("name") else {
        reader.complain(
            fields.at,
            "the invariant has no `name`",
            "say what must always hold",
        );
        return None;
    };
    let name = reader.text("name", name)?;
    let tools = match fields.get("call") {
        Some(node) if node.as_text() == Some("all") => Vec::new(),
        Some(node) => reader
            .texts("call", node)
            .into_iter()
            .map(|(_, t)| t)
            .collect(),
        None => {
            reader.complain(
                fields.at,
                "the invariant has no `call`",
                "name the tool or tools that it is about, or `all`",
            );
            return None;
        }
    };
    let question = match fields.get("question") {
        Some(node) => question(reader, node)?,
        None => {
            reader.complain(
                fields.at,
                "the invariant has no `question`",
                "write `unattended`, `approved` or `approve`",
            );
            return None;
        }
    };
    let claim = match (fields.get("never"), fields.get("always")) {
        (Some(node), None) => Claim::Never(condition(reader, "never", node)?),
        (None, Some(node)) => Claim::Always(condition(reader, "always", node)?),
        _ => {
            reader.complain(
                fields.at,
                "the invariant has neither `never` nor `always`, or both",
                "write `never: <condition>` for what must not be permitted, or \
                 `always: <condition>` for what must be",
            );
            return None;
        }
    };
    Some(Invariant {
        name,
        at: fields.at,
        tools,
        question,
        claim,
    })
}

fn question(reader: &mut Reader<'_>, node: &Node) -> Option<Question> {
    let text = node.as_text().unwrap_or_default();
    let found = Question::ALL.into_iter().find(|q| q.to_string() == text);
    if found.is_none() {
        let names = Question::ALL.map(|q| q.to_string());
        let near = nearest(text, names.iter().map(String::as_str));
        reader.complain(
            node.at,
            format!("{} is not a question", node.shown()),
            near.map_or_else(
                || format!("the questions are {}", names.join(", ")),
                |near| format!("did you mean `{near}`?"),
            ),
        );
    }
    found
}

fn condition(reader: &mut Reader<'_>, field: &str, node: &Node) -> Option<String> {
    let text = match &node.kind {
        super::document::Kind::Bool(value) => value.to_string(),
        _ => reader.text(field, node)?,
    };
    if let Err(errors) = text.parse::<cedar_policy::Expression>() {
        reader.complain(
            node.at,
            format!("the condition is not an expression of Cedar: {errors}"),
            "write it as in a `when` clause, without the braces",
        );
        return None;
    }
    Some(text)
}
