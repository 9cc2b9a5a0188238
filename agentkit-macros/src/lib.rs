//! The attributes of `agentkit`: `#[tool]`, `#[tools]` and `#[agent]`, and the list `tools![]`.
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
mod located;
mod name;
mod options;
mod problems;
#[cfg(test)]
mod snapshots;
mod tool;
mod ttl;

use proc_macro::TokenStream;

/// Makes a tool of a function: beside the function, a type of the same name that implements
/// `agentkit::tool::Tool`.
///
/// The doc comment is what the model is told of the tool, and the doc comment of a parameter what
/// it is told of the argument.
///
/// # Keys
///
/// | key | what it says |
/// |---|---|
/// | `name = "…"` | the name for models, instead of the function's |
/// | `type = Name` | the name of the type, where the function's is taken |
/// | `require_approval` | every call needs an approval; `= "why"` says why, `= false` that none does |
/// | `require_approval(when = …, why = "…", ttl = "24h", quorum = 2)` | calls for which the closure or function `when` of the arguments says so (one that fails or panics means approval); how long a request stays open; how many people must approve |
/// | `suspend = Question, resume = Answer` | the tool may return `Flow::Suspend(Question)`, and is called again with the answer |
/// | `read_only`, `destructive`, `idempotent` | what the author claims of its effects; an idempotent tool is started again after a crash |
/// | `timeout = "30s"` | a call that takes longer is stopped and has failed |
/// | `labels = ["…"]` | words for policies and filters |
/// | `facts(name = …)` | what policies are told about the arguments, by closures or functions of them |
/// | `crate = ::path` | where `agentkit` is, if it is renamed or re-exported |
///
/// # Parameters
///
/// | attribute | what it says |
/// |---|---|
/// | none | an argument that the model sends, owned or borrowed |
/// | `#[arg(default)]`, `#[arg(default = …)]` | it may be absent |
/// | `#[arg(rename = "…")]` | its name for models |
/// | `#[serde(…)]`, `#[schemars(…)]` | forwarded; bounds such as `#[schemars(range(min = 1))]` hold for calls too |
/// | `#[ctx]` | state of the application, by its type: `&T`, `Arc<T>` or a clone |
/// | `#[resume]` | the answer to the tool's question: `Option<Answer>` |
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(options.into(), item.into()).into()
}

/// Makes tools of methods: on an `impl` block, every method with `#[tool]` becomes a tool, and the
/// value whose methods they are is their shared state.
///
/// It takes nothing itself: the keys of each method's `#[tool]` and the attributes of its parameters
/// are those of [`macro@tool`]. The type of a tool stands beside the block and is called as its
/// method, or by `type = Name`.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand_methods(options.into(), &item.into()).into()
}

/// Makes an agent of a struct: implements `agentkit::agent::Agent`, and generates the enums of
/// its pending calls and of the answers to its questions.
///
/// # Keys
///
/// | key | what it says |
/// |---|---|
/// | `name = "…"` | under which its runs are stored |
/// | `model = "provider/model"` | the model |
/// | `instructions = …` | what the model is told first; any expression |
/// | `tools = [a, b::c, d as Variant]` | what it may call; `#[cfg(…)]` is allowed on an entry |
/// | `agents = [DataAgent, b::Other as Variant]` | agents to which it may hand tasks: each is offered to the model as a tool of its name, described by its doc comment. What waits there is typed too: `…Pending::DataAgent(DataAgentPending::…)`, and `…Pending::DataAgentTask` where handing over the task itself needs approval |
/// | `dynamic_tools`, `dynamic_tools = …` | tools may be added at run time, by `AgentBuilder::tools` (and are those of the expression); they are the variant `Other` of both enums, which is there only then |
/// | `policy = "file"`, `policies = ["file", …]` | Cedar files relative to the source file; a test named after the agent checks them against the tools |
/// | `require_approval`, `require_approval(when = …)` | every call needs an approval, or those for which the closure or function of a `ProposedCall` says so; a run can ask for more, never for less |
/// | `max_steps = 16`, `max_tokens = 100_000`, `max_time = "10m"` | budgets of runs that do not say so themselves |
/// | `temperature = 0.2`, `max_output_tokens = 1000` | settings of the model |
/// | `crate = ::path` | where `agentkit` is, if it is renamed or re-exported |
#[proc_macro_attribute]
pub fn agent(options: TokenStream, item: TokenStream) -> TokenStream {
    agent::expand(options.into(), item.into()).into()
}

/// A vector of tools, `tools![find_order, issue_refund]`, in which no name may occur twice:
/// `Vec<Arc<dyn DynTool>>`. Entries may have `#[cfg(…)]`. It is `agentkit::tool::tools!`; its name
/// here is taken by the attribute.
#[proc_macro]
pub fn tool_list(list: TokenStream) -> TokenStream {
    list::expand(list.into()).into()
}
