//! Tools: what a model may call, the contexts they are given, and sets of them.
//!
//! A [`Tool`] is a type with typed arguments; `#[tool]` makes one from a function. The run
//! machine sees tools through [`DynTool`], where arguments are canonical JSON: what a model wrote
//! is [settled](DynTool::settle) first, that is, decoded strictly into the Rust type and
//! serialised again. From there on only the settled arguments exist: a person sees them, policies
//! judge them, the tool receives them.

mod against_schema;
mod approval_rule;
mod argument_error;
mod cancellation;
mod context;
mod contexts;
mod delegate;
#[cfg(feature = "dynamic")]
mod dynamic;
mod fact;
mod flow;
mod label;
mod schema;
mod set;
mod settle;
mod spec;
mod tool_error;
mod typed;
mod unused;

#[doc(hidden)]
pub mod private;

pub(crate) use against_schema::SchemaValidator;
pub use agentkit_macros::tool_list as tools;
pub use approval_rule::{ApprovalCondition, ApprovalRule, NeedsApproval};
pub use argument_error::{ArgumentError, ArgumentProblem};
pub use cancellation::Cancellation;
pub use context::{RunContext, ToolContext};
pub use contexts::{ContextType, Contexts};
pub(crate) use delegate::{Delegate, Task};
#[cfg(feature = "dynamic")]
pub use dynamic::{Dynamic, DynamicError};
pub use fact::{Fact, FactError};
pub use flow::{Flow, Json, Never};
pub(crate) use label::check_label;
pub(crate) use schema::answer_schema;
pub use set::{DuplicateTool, ToolSet};
pub(crate) use spec::check_name;
pub use spec::{Hints, SourceLocation, ToolSpec};
pub use tool_error::ToolError;
pub use typed::{DynTool, Tool, Typed, erase};

#[cfg(test)]
mod tests;
