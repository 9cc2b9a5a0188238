use std::{collections::BTreeSet, fmt, time::Duration};

use serde_json::Value;

use super::{ApprovalRule, ContextType, Fact};
use crate::call::{Canonical, Digest, FieldHasher};

/// What is known of a tool without calling it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name by which models call it: a letter or `_`, then letters, digits, `_` and `-`, at
    /// most 64 bytes.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// JSON Schema (2020-12) of what a model may send: an object, closed at every depth.
    pub input_schema: Value,
    /// JSON Schema of the effective arguments, that is, of the arguments serialised again. It is
    /// what policies are checked against.
    pub policy_schema: Value,
    /// JSON Schema of the result, where the result's type has one.
    pub output_schema: Option<Value>,
    /// JSON Schema of the question, where the tool can ask one.
    pub suspend_schema: Option<Value>,
    /// JSON Schema of the answer, where the tool can ask for one.
    pub resume_schema: Option<Value>,
    /// Whether a person has to approve each call.
    pub approval: ApprovalRule,
    /// What the author says about effects.
    pub hints: Hints,
    /// How long one call may take; then it is cancelled and has failed. Without a limit a call
    /// takes as long as it takes.
    pub timeout: Option<Duration>,
    /// Words for what a call has to do with, such as `money` or `secret`: at most 128 characters
    /// each. The session takes them on when a call is admitted, and policies read them in
    /// `context.session.labels` from then on. Those that only a call itself can tell are taken on
    /// with [`RunContext::label`](super::RunContext::label).
    pub labels: BTreeSet<String>,
    /// What policies are told about the arguments beside the arguments themselves.
    pub facts: Vec<Fact>,
    /// The contexts without which the tool cannot run.
    pub contexts: Vec<ContextType>,
    /// Where the tool is declared.
    pub source: Option<SourceLocation>,
}

impl ToolSpec {
    /// A tool of this name with an input schema, and nothing else said about it.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            policy_schema: input_schema.clone(),
            input_schema,
            output_schema: None,
            suspend_schema: None,
            resume_schema: None,
            approval: ApprovalRule::default(),
            hints: Hints::default(),
            timeout: None,
            labels: BTreeSet::new(),
            facts: Vec::new(),
            contexts: Vec::new(),
            source: None,
        }
    }

    /// SHA-256 over the name and the schemas of arguments, question and answer: it changes when
    /// an approval or an answer given under the old schemas can no longer be trusted.
    pub fn schema_digest(&self) -> Digest {
        let schemas = [&self.suspend_schema, &self.resume_schema];
        let [suspend, resume] = schemas.map(|schema| schema.as_ref().map(text));
        let mut hasher = FieldHasher::new("agentkit/tool-schema/v1");
        hasher
            .field(self.name.as_bytes())
            .field(text(&self.input_schema).as_bytes())
            .field(text(&self.policy_schema).as_bytes())
            .optional(suspend.as_deref().map(str::as_bytes))
            .optional(resume.as_deref().map(str::as_bytes));
        hasher.finish()
    }
}

/// The text of a schema: canonical, or as it is if it is a hand-written one that no canonical
/// text fits.
fn text(schema: &Value) -> String {
    Canonical::of(schema).map_or_else(|_| schema.to_string(), |canonical| canonical.to_string())
}

/// What a tool's author says about its effects. Policies may refer to these; nothing else trusts
/// them, except that an idempotent tool whose outcome is unknown is run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// What the tool does cannot be undone.
    pub destructive: bool,
    /// Calling it twice with the same idempotency key has the effect of calling it once.
    pub idempotent: bool,
}

/// A place in source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as the compiler names it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What every known model provider accepts as the name of a tool.
const NAME_RULE: &str = "a name starts with a letter or `_`, continues with letters, digits, `_` \
                         and `-` (all ASCII), and has at most 64 bytes";

/// Checks the name of a tool; the error is the rule.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let continues = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if starts && continues && name.len() <= 64 {
        Ok(())
    } else {
        Err(NAME_RULE)
    }
}
