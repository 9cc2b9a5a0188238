//! What must hold for every call, whatever its arguments: claims that a solver can prove.

use cedar_policy::{Policy, PolicyId, ValidationMode, Validator};
use serde::Serialize;

use crate::decision::Question;
use crate::load_error::Finding;
use crate::policy::lower;
use crate::set::PolicySet;
#[cfg(feature = "proofs")]
use crate::shape::Shape;
use crate::shape::quoted;
use crate::slice::Slice;
use crate::tool::nearest;

use super::document::{Node, Place, Reader};

/// A claim about every call of some tools.
#[derive(Clone, Debug)]
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

/// What became of an invariant for one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InvariantResult {
    /// Name of the invariant.
    pub name: String,
    /// The file that holds it.
    pub file: String,
    /// Its line, counted from 1.
    pub line: u32,
    /// The tool.
    pub tool: String,
    /// The result.
    #[serde(flatten)]
    pub proof: Proof,
}

/// The result of trying to prove an invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "proof", rename_all = "snake_case")]
pub enum Proof {
    /// It holds for every call.
    Proved,
    /// It does not hold.
    Refuted {
        /// A test case that fails, ready to be put into a file: YAML, or a test of
        /// `cedar run-tests` where no call of a tool brings the question about.
        example: String,
    },
    /// There is no solver; nothing is known.
    Skipped {
        /// What is missing.
        why: String,
    },
    /// The solver found no answer.
    Undecided {
        /// What it said.
        why: String,
    },
}

impl InvariantResult {
    /// True if the invariant is refuted, or the solver could not decide.
    pub fn amiss(&self) -> bool {
        matches!(self.proof, Proof::Refuted { .. } | Proof::Undecided { .. })
    }
}

#[cfg(feature = "proofs")]
/// What the engine guarantees about every question that it puts, as a condition.
pub(crate) fn assumed(slice: &Slice, question: Question) -> String {
    let tool = &slice.tool.declaration;
    let mut parts = vec![
        "principal != User::\"\"".to_owned(),
        "resource != Agent::\"\"".to_owned(),
        format!("context.tool.name == {}", quoted(&tool.name)),
        format!("context.tool.read_only == {}", tool.read_only),
        format!("context.tool.destructive == {}", tool.destructive),
        format!("context.tool.idempotent == {}", tool.idempotent),
        within_calendar("context.system.now"),
    ];
    if question != Question::Unattended {
        let least = i32::from(question == Question::Approved);
        parts.push(format!("context.approvals.count >= {least}"));
        parts.push(within_calendar("context.approvals.requested_at"));
        parts.push("context.approvals.requested_at <= context.system.now".to_owned());
    }
    if question == Question::Approve {
        parts.push("context.requester != User::\"\"".to_owned());
    }
    if let Shape::Record(record) = &slice.tool.input {
        for field in record.fields.iter().filter(|field| field.required) {
            let path = format!("context.input[{}]", quoted(&field.key));
            if let Some(count) = &field.count {
                let count = format!("context.input[{}]", quoted(count));
                parts.push(format!("{count} >= 0"));
                parts.push(format!("{path}.isEmpty() == ({count} == 0)"));
            }
            if field.shape.is_float() {
                parts.push(format!("{path}.floor <= {path}.ceil"));
            }
        }
    }
    parts.join(" && ")
}

#[cfg(feature = "proofs")]
fn within_calendar(moment: &str) -> String {
    format!(
        "{moment} >= datetime(\"0000-01-01\") && {moment} <= datetime(\"9999-12-31T23:59:59.999Z\")"
    )
}

/// A permit that matches where a condition holds.
pub(crate) fn condition_policy(
    condition: &str,
    slice: &Slice,
    question: Question,
) -> Result<Policy, String> {
    let action = quoted(slice.asked(question).action.id().unescaped());
    let text =
        format!("permit (principal, action == Action::{action}, resource) when {{ {condition} }};");
    Policy::parse(Some(PolicyId::new("agentkit:condition")), text).map_err(|e| e.to_string())
}

/// Whether every invariant speaks of declared tools and of what their questions hold; what is
/// wrong is found with and without a solver.
pub(crate) fn check(set: &PolicySet, file: &str, invariants: &[Invariant]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for invariant in invariants {
        let finding = |message: String| Finding {
            file: Some(file.to_owned()),
            line: Some(invariant.at.line),
            column: Some(invariant.at.column),
            ..Finding::about(format!("invariant `{}`: {message}", invariant.name))
        };
        for tool in invariant
            .tools
            .iter()
            .filter(|tool| !set.slices.contains_key(*tool))
        {
            let near = nearest(tool, set.slices.keys().map(String::as_str));
            findings.push(finding(format!("`{tool}` is not a declared tool")).suggest(
                near.map_or_else(
                    || "name a declared tool, or `all`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                ),
            ));
        }
        let (Claim::Never(condition) | Claim::Always(condition)) = &invariant.claim;
        for (tool, slice) in &set.slices {
            if !invariant.tools.is_empty() && !invariant.tools.contains(tool) {
                continue;
            }
            if let Err(message) = validate(condition, slice, invariant.question) {
                findings.push(
                    finding(message)
                        .tool_named(tool)
                        .suggest("use what `schema` shows for the action of this question"),
                );
            }
        }
    }
    findings
}

fn validate(condition: &str, slice: &Slice, question: Question) -> Result<(), String> {
    let policy = condition_policy(condition, slice, question)?;
    let policies =
        cedar_policy::PolicySet::from_policies([policy]).map_err(|error| error.to_string())?;
    let result = Validator::new(slice.schema.clone()).validate(&policies, ValidationMode::Strict);
    match result.validation_errors().next() {
        None => Ok(()),
        Some(error) => {
            let text = error.to_string();
            let prefix = "for policy `agentkit:condition`, ";
            Err(lower(text.strip_prefix(prefix).unwrap_or(&text)))
        }
    }
}
