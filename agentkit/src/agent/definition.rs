use std::{fmt, sync::Arc};

use agentkit_policy::{FactDeclaration, LoadError, PolicyEngine, PolicySource, ToolDeclaration};
use serde_json::Value;

use super::{AgentBuilder, PendingError, governing::Governing};
use crate::{
    approval::PendingCall,
    call::{Canonical, CanonicalError, Digest, FieldHasher},
    gate::derived_types,
    run::Defaults,
    tool::{ArgumentError, Delegate, DynTool, SourceLocation},
};

/// An agent by its declaration: what it is called, what it is told, what it may call, and under
/// which policies. `#[agent]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an agent",
    label = "not an agent",
    note = "put `#[agent(name = \"…\", model = \"…\", instructions = \"…\", tools = [])]` on the \
            struct"
)]
pub trait Agent: Send + Sync + 'static {
    /// The calls of this agent that wait for a person, with typed arguments.
    type Pending: PendingSet;

    /// The answers to questions of this agent's tools.
    type Resume: ResumeSet;

    /// The declaration.
    fn definition() -> AgentDefinition;

    /// How many agents are below it. Only there so that a circle of agents, of which the calls that
    /// wait would have no finite type, is an error with a place.
    #[doc(hidden)]
    const AGENTS_BELOW: usize = 0;

    /// The name in the declaration. `#[agent]` gives it without making the rest.
    fn name() -> String {
        Self::definition().name
    }

    /// Starts to build the agent: contexts, store, model.
    fn builder() -> AgentBuilder<Self>
    where
        Self: Sized,
    {
        AgentBuilder::new()
    }
}

/// An agent that is declared to take tools at run time, beside those of its declaration. The
/// enums of its pending calls and of its answers have a variant `Other` for them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` takes no tools at run time",
    label = "its pending calls have no variant for such tools",
    note = "declare it with `#[agent(dynamic_tools, …)]`"
)]
pub trait DynamicTools: Agent {}

/// What an agent is declared to be.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentDefinition {
    /// The name, under which its runs are stored.
    pub name: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// What the model is told before everything else.
    pub instructions: String,
    /// What the model may call, in the order in which it is offered.
    pub tools: Vec<Arc<dyn DynTool>>,
    /// What it is for, as another agent that may hand it a task is told.
    pub description: String,
    /// Agents to which it may hand tasks: each is offered to the model as a tool of the agent's
    /// name, with the task as its one argument.
    pub agents: Vec<AgentDefinition>,
    /// The texts of the policies; without any the built-in policy is in force.
    pub policies: Vec<PolicySource>,
    /// What holds for all its runs: budgets, approval, settings of the model.
    pub defaults: Defaults,
    /// Where it is declared; `None` for an agent that is made at run time.
    pub source: Option<SourceLocation>,
    /// Facts about earlier calls that its policies read.
    pub facts: Vec<FactDeclaration>,
}

impl AgentDefinition {
    /// An agent without tools and policies.
    pub fn new(
        name: impl Into<String>,
        model: impl Into<String>,
        instructions: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            model: model.into(),
            instructions: instructions.into(),
            tools: Vec::new(),
            description: String::new(),
            agents: Vec::new(),
            policies: Vec::new(),
            defaults: Defaults::default(),
            source: None,
            facts: Vec::new(),
        }
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Says what the agent is for, to agents that may hand it tasks.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Says what holds for all its runs.
    pub fn defaults(mut self, defaults: Defaults) -> Self {
        self.defaults = defaults;
        self
    }

    /// Says where the agent is declared, for errors about names that two have.
    pub const fn source(mut self, source: SourceLocation) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds a sub-agent: `.agent(<Billing as Agent>::definition())`. Its runs act for the same
    /// requester under the same option of the run. Its calls are judged by the policies of the
    /// agents above it, and by its own where it has any: it can be stricter, never laxer.
    pub fn agent(mut self, agent: Self) -> Self {
        self.agents.push(agent);
        self
    }

    /// The tools of the agent with those that stand for its sub-agents.
    pub(crate) fn all_tools(&self) -> impl Iterator<Item = Arc<dyn DynTool>> {
        let delegates = self.agents.iter().map(|agent| {
            let tool = Delegate::new(&agent.name, &agent.description, agent.source);
            Arc::new(tool) as Arc<dyn DynTool>
        });
        self.tools.iter().cloned().chain(delegates)
    }

    /// Declares a fact about earlier calls, which its policies read as `context.session.NAME`. It
    /// is computed in the transaction that admits a call, so that a cap holds on any number of
    /// instances.
    pub fn fact(mut self, fact: FactDeclaration) -> Self {
        self.facts.push(fact);
        self
    }

    /// Adds the text of a policy file; errors call it by `name`.
    pub fn policy(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.policies.push(PolicySource::new(name, text));
        self
    }

    /// SHA-256 over name, model, instructions, the schemas of all tools, the sub-agents and
    /// the settings of the model: a run is pinned to it. Policies are not part of it, since they are asked anew at release.
    pub fn digest(&self) -> Digest {
        let tools: Vec<Digest> = self
            .tools
            .iter()
            .map(|tool| tool.spec().schema_digest())
            .collect();
        let mut hasher = FieldHasher::new("agentkit/agent-definition/v1");
        hasher
            .field(self.name.as_bytes())
            .field(self.model.as_bytes())
            .field(self.instructions.as_bytes())
            .list(tools.iter().map(|digest| digest.as_bytes().as_slice()));
        if !self.agents.is_empty() {
            let agents: Vec<Digest> = self.agents.iter().map(Self::digest).collect();
            hasher.list(agents.iter().map(|digest| digest.as_bytes().as_slice()));
        }
        let settings = (self.defaults.temperature, self.defaults.max_output_tokens);
        if settings != (None, None) {
            hasher.field(format!("{settings:?}").as_bytes());
        }
        hasher.finish()
    }

    /// The tools as the policy engine knows them.
    pub fn tool_declarations(&self) -> Vec<ToolDeclaration> {
        self.all_tools()
            .map(|tool| {
                let spec = tool.spec();
                let mut declaration =
                    ToolDeclaration::new(spec.name.clone(), spec.policy_schema.clone());
                declaration.read_only = spec.hints.read_only;
                declaration.destructive = spec.hints.destructive;
                declaration.idempotent = spec.hints.idempotent;
                declaration.require_approval = spec.approval.is_unconditional();
                declaration.derived = derived_types(spec);
                declaration
            })
            .collect()
    }

    /// A policy engine with this agent's own policies in force, which may name its tools and those
    /// of the agents below it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the policies: syntax, unknown tools, arguments that no tool
    /// has.
    pub fn policy_engine(&self) -> Result<PolicyEngine, LoadError> {
        Governing::root(self)
            .policies(self)
            .map(|(engine, _)| engine)
    }

    /// Checks the policies against the tools, those of the agents below as well. The test that
    /// `#[agent]` generates ends with it, so the error prints as people read it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the policies.
    pub fn check_policies(&self) -> Result<(), impl fmt::Debug + use<>> {
        Governing::root(self).check(self).map_err(PolicyFault)
    }
}

/// A [`LoadError`] that a failing test prints as people read it.
struct PolicyFault(LoadError);

impl fmt::Debug for PolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the policies do not fit the agent's tools:\n{}", self.0)
    }
}

/// The pending calls of an agent, one variant a tool. `#[agent]` implements it for the enum that
/// it generates.
pub trait PendingSet: Sized {
    /// Types a pending call.
    ///
    /// # Errors
    ///
    /// When the agent has no such tool, the stored arguments or question do not fit its types any
    /// more, or the call is in doubt, which is a matter for an operator.
    fn from_call(call: PendingCall) -> Result<Self, PendingError>;
}

/// The answers to questions of an agent's tools, one variant a tool. `#[agent]` implements it for
/// the enum that it generates.
pub trait ResumeSet: Sized {
    /// Types an answer that arrived as JSON, to a question of one of the agent's own tools.
    ///
    /// # Errors
    ///
    /// When the agent has no such tool, the tool asks no questions, or the answer does not fit.
    fn decode(tool: &str, answer: &Value) -> Result<Self, ArgumentError>;

    /// Types an answer to the question of a call, which may have been asked by a tool of a
    /// sub-agent.
    ///
    /// # Errors
    ///
    /// When the agent has no such tool and no such sub-agent, the tool asks no questions, or the
    /// answer does not fit.
    fn decode_for(call: &PendingCall, answer: &Value) -> Result<Self, ArgumentError> {
        Self::decode(&call.tool, answer)
    }

    /// The tool whose question it answers.
    fn tool(&self) -> &str;

    /// The answer in canonical form.
    ///
    /// # Errors
    ///
    /// When the value has no canonical form, such as a float that is not finite.
    fn encode(&self) -> Result<Canonical, CanonicalError>;
}
