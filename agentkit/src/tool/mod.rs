//! Tools: what a model may call, the contexts they are given, and sets of them.
//!
//! A [`Tool`] is a type with typed arguments; `#[tool]` makes one from a function. The run
//! machine sees tools through [`DynTool`], where arguments are canonical JSON: what a model wrote
//! is [settled](DynTool::settle) first, that is, decoded strictly into the Rust type and
//! serialised again. From there on only the settled arguments exist: a person sees them, policies
//! judge them, the tool receives them.

mod argument_error;
mod cancellation;
mod context;
mod contexts;
mod delegate;
#[cfg(feature = "dynamic")]
mod dynamic;
mod flow;
mod schema;
mod set;
mod settle;
mod spec;
mod tool_error;
mod typed;
mod unused;

#[doc(hidden)]
pub mod private;

pub use agentkit_macros::tools;
pub use argument_error::{ArgumentError, ArgumentProblem};
pub use cancellation::Cancellation;
pub use context::{RunContext, ToolContext};
pub use contexts::{ContextType, Contexts};
pub(crate) use delegate::{Delegate, Task};
#[cfg(feature = "dynamic")]
pub use dynamic::{Dynamic, DynamicError};
pub use flow::{Flow, Json, Never};
pub use set::{DuplicateTool, ToolSet};
pub(crate) use spec::check_name;
pub use spec::{ApprovalRule, Hints, SourceLocation, ToolSpec};
pub use tool_error::ToolError;
pub use typed::{DynTool, Tool, Typed, erase};

#[cfg(test)]
mod tests;
