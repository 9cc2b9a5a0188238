//! What the expansions of `#[tool]`, `#[agent]` and `tools![]` refer to. Not covered by any
//! promise of stability.

pub mod contexts;
pub mod returned;

pub use std::{borrow::Borrow, string::String};
use std::{
    ffi::{CStr, CString, OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

pub use schemars;
use schemars::JsonSchema;
pub use serde;
use serde::Serialize;
pub use serde_json;
use serde_json::Value;

use super::{ApprovalCondition, ApprovalRule, ArgumentProblem, NeedsApproval, schema, settle};
pub use super::{
    ArgumentError, ContextType, DynTool, Fact, Flow, Never, SourceLocation, Tool, ToolContext,
    ToolError, ToolSpec, erase,
};
use crate::call::{Canonical, CanonicalError};

/// What [`Tool::run`] comes back with.
pub type Returned<S> = Result<Flow<Value, S>, ToolError>;

/// The schema of what a model may send.
pub fn input_schema<T: JsonSchema>() -> Value {
    schema::for_models(schema::arguments(schema::accepted::<T>()))
}

/// The schema of the arguments once they are serialised again.
pub fn policy_schema<T: JsonSchema>() -> Value {
    schema::arguments(schema::produced::<T>())
}

/// The beginning of a specification: name, description and schemas.
pub fn spec<T: Tool>(description: String) -> ToolSpec {
    let mut spec = ToolSpec::new(T::NAME, description, input_schema::<T::Args>());
    spec.policy_schema = policy_schema::<T::Args>();
    spec
}

/// The specification of a tool whose declaration does not compile.
pub fn stub(name: &str) -> ToolSpec {
    ToolSpec::new(name, "", Value::Bool(false))
}

/// The schema of a question or an answer.
pub fn some_schema<T: JsonSchema>() -> Option<Value> {
    Some(schema::accepted::<T>())
}

/// The rule of a tool that requires an approval.
pub fn approval(why: Option<String>, quorum: u32, ttl_seconds: Option<u64>) -> ApprovalRule {
    let mut rule = ApprovalRule::required();
    rule.why = why;
    rule.quorum = quorum;
    rule.ttl = ttl_seconds.map(Duration::from_secs);
    rule
}

/// What a tool can borrow an argument as: the field holds the owned form. Unlike with `ToOwned`
/// nothing needs to be cloned, so a type of the tool's author need not be `Clone`.
#[diagnostic::on_unimplemented(
    message = "an argument cannot be borrowed as `{Self}`",
    label = "what owns this is not known",
    note = "take the owned type"
)]
pub trait Lend {
    /// What the field holds.
    type Owned: Borrow<Self>;
}

impl<T> Lend for T {
    type Owned = T;
}

impl Lend for str {
    type Owned = String;
}

impl<T> Lend for [T] {
    type Owned = Vec<T>;
}

impl Lend for Path {
    type Owned = PathBuf;
}

impl Lend for OsStr {
    type Owned = OsString;
}

impl Lend for CStr {
    type Owned = CString;
}

/// What can be written as an argument of a tool. There is one such trait for each derive that an
/// argument needs, so that each speaks of one bound, in the same words.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "a model cannot send this",
    note = "an argument needs `#[derive(serde::Serialize, serde::Deserialize, \
            schemars::JsonSchema)]`; what comes from the application is taken with `#[ctx]`"
)]
pub trait Written: Serialize {}

impl<T: Serialize> Written for T {}

/// What can be read as an argument of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "a model cannot send this",
    note = "an argument needs `#[derive(serde::Serialize, serde::Deserialize, \
            schemars::JsonSchema)]`; what comes from the application is taken with `#[ctx]`"
)]
pub trait Readable<'de>: serde::Deserialize<'de> {}

impl<'de, T: serde::Deserialize<'de>> Readable<'de> for T {}

/// What can be described to a model as an argument of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "a model cannot send this",
    note = "an argument needs `#[derive(serde::Serialize, serde::Deserialize, \
            schemars::JsonSchema)]`; what comes from the application is taken with `#[ctx]`"
)]
pub trait Described: JsonSchema {}

impl<T: JsonSchema> Described for T {}

/// The condition for approvals of the tool `T`.
pub fn condition<T, F, R>(predicate: F) -> Option<ApprovalCondition>
where
    T: Tool,
    F: Fn(&T::Args) -> R + Send + Sync + 'static,
    R: NeedsApproval,
{
    Some(ApprovalCondition::typed::<T, F, R>(predicate))
}

/// A fact about calls of the tool `T`.
pub fn fact<T, F, V>(name: &str, derivation: F) -> Fact
where
    T: Tool,
    F: Fn(&T::Args) -> V + Send + Sync + 'static,
    V: Serialize + JsonSchema,
{
    Fact::typed::<T, F, V>(name, derivation)
}

/// How long a call may take.
pub const fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

/// Joins doc comments; blank lines before and after the text are dropped.
pub fn description(lines: &[&str]) -> String {
    let text = lines.join("\n");
    let start = text
        .split_inclusive('\n')
        .take_while(|line| line.trim().is_empty())
        .map(str::len)
        .sum();
    text.get(start..).unwrap_or_default().trim_end().to_owned()
}

/// The answer to a question of `T`, decoded strictly.
///
/// # Errors
///
/// When the answer does not fit, or `T` asks no questions.
pub fn decode_answer<T: Tool>(answer: &Value) -> Result<T::Resume, ArgumentError> {
    settle::answer::<T::Resume>(answer, T::NAME)?
        .decode()
        .map_err(|error| {
            let problem = ArgumentProblem::new("$", error.to_string());
            ArgumentError::one(settle::answer_to(T::NAME), problem)
        })
}

/// The canonical text of an answer.
///
/// # Errors
///
/// When there is none.
pub fn encode_answer<R: Serialize>(answer: &R) -> Result<Canonical, CanonicalError> {
    Canonical::of(answer)
}

/// The error for an answer to a tool that the agent does not have.
pub fn unknown_tool(tool: &str, agent: &str) -> ArgumentError {
    ArgumentError::one(
        format!("the answer is for no tool of the agent `{agent}`"),
        ArgumentProblem::mismatch(
            "$",
            "the name of the tool that asked the question",
            format!("`{tool}`"),
        ),
    )
}

/// The name of an agent.
pub fn agent_name(name: impl Into<String>) -> String {
    name.into()
}

/// An empty list of tools.
pub fn no_tools() -> Vec<Arc<dyn DynTool>> {
    Vec::new()
}

/// Fails at compile time when a name occurs twice.
///
/// # Panics
///
/// Then.
#[expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, where a panic is an error message"
)]
pub const fn distinct(names: &[&str]) {
    let mut i = 0;
    while i < names.len() {
        let mut j = i + 1;
        while j < names.len() {
            assert!(
                !same(names[i].as_bytes(), names[j].as_bytes()),
                "two tools of this list have the same name; give one of them another with \
                     `#[tool(name = \"…\")]`"
            );
            j += 1;
        }
        i += 1;
    }
}

#[expect(clippy::indexing_slicing, reason = "runs in the compiler")]
const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
