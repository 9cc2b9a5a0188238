//! The attributes of `agentkit`: `#[tool]` and `#[agent]`, and the list `tools![]`.
//!
//! Use them through `agentkit`, which re-exports them and documents what they do.
//!
//! Each attribute is a pipeline: *parse* takes the tokens apart, *normalise* checks everything
//! and makes a model, *generate* turns the model into code and looks at no syntax. All problems
//! of one declaration are reported at once; the declaration itself is emitted even then, so that
//! one mistake does not become many.

mod agent;
mod docs;
mod list;
mod name;
mod options;
mod problems;
mod tool;
mod ttl;

use proc_macro::TokenStream;

/// Makes a tool of a function: beside the function, a type of the same name that implements
/// `agentkit::tool::Tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(options.into(), item.into()).into()
}

/// Makes an agent of a struct: implements `agentkit::agent::Agent`, and generates the enums of
/// its pending calls and of the answers to its questions.
#[proc_macro_attribute]
pub fn agent(options: TokenStream, item: TokenStream) -> TokenStream {
    agent::expand(options.into(), item.into()).into()
}

/// A vector of tools, `tools![find_order, issue_refund]`, in which no name may occur twice:
/// `Vec<Arc<dyn DynTool>>`. Entries may have `#[cfg(…)]`.
#[proc_macro]
pub fn tools(list: TokenStream) -> TokenStream {
    list::expand(list.into()).into()
}
