use std::{collections::HashMap, marker::PhantomData, sync::Arc, time::Duration};

use agentkit_policy::{FactDeclaration, LoadError, PolicySource};

use super::{Agent, AgentDefinition, DynamicTools, Hosted, governing::Governing};
use crate::{
    approval::{ClaimsOnly, Directory},
    call::CallId,
    model::{ChatModel, ModelName, ModelNameError},
    run::{Active, Hook, Runtime, Settings},
    store::Store,
    tool::{Contexts, DuplicateTool, DynTool, ToolSet, check_label, check_name},
};

/// Builds what hosts an agent: its store, its model, and the state that its tools are given.
#[must_use = "nothing is hosted until `build` is called"]
pub struct AgentBuilder<A> {
    store: Option<Store>,
    model: Option<Arc<dyn ChatModel>>,
    models: HashMap<String, Arc<dyn ChatModel>>,
    operator_role: Option<String>,
    hooks: Vec<Arc<dyn Hook>>,
    tools: Vec<Arc<dyn DynTool>>,
    contexts: Contexts,
    policies: Option<Vec<PolicySource>>,
    facts: Vec<FactDeclaration>,
    directory: Arc<dyn Directory>,
    settings: Settings,
    agent: PhantomData<fn() -> A>,
}

/// Why an agent cannot be hosted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no store.
    #[error("agent `{agent}` has no store; open one and pass it to `store`")]
    NoStore {
        /// The agent.
        agent: String,
    },
    /// There is no model, and this build cannot make one.
    #[error(
        "agent `{agent}` names the model `{model}`, and this build has no providers; pass a model to `model`, or build with the feature `genai`"
    )]
    NoModel {
        /// The agent.
        agent: String,
        /// The model that its declaration names.
        model: String,
    },
    /// The model's name is none.
    #[error("agent `{agent}` names a model that is none")]
    ModelName {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        #[source]
        source: ModelNameError,
    },
    /// The provider's client cannot be made.
    #[error("the model `{model}` cannot be used")]
    Model {
        /// The model.
        model: String,
        /// What is wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Two tools have the same name.
    #[error("the tools of agent `{agent}` cannot be told apart")]
    DuplicateTool {
        /// The agent.
        agent: String,
        /// Which.
        #[source]
        source: DuplicateTool,
    },
    /// A tool needs a context that was not given.
    #[error(
        "tool `{tool}` of agent `{agent}` needs a context of type `{context}`; pass one to `ctx`"
    )]
    MissingContext {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
        /// The type.
        context: &'static str,
    },
    /// A label of a tool is none.
    #[error("the label {label:?} of tool `{tool}` of agent `{agent}` is refused: {rule}")]
    Label {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
        /// The label.
        label: String,
        /// What a label must be.
        rule: &'static str,
    },
    /// A sub-agent has a name that no tool can have.
    #[error("the sub-agent `{name}` of agent `{agent}` cannot be offered as a tool: {rule}")]
    AgentName {
        /// The agent.
        agent: String,
        /// The name of the sub-agent.
        name: String,
        /// What a name must be.
        rule: &'static str,
    },
    /// The policies do not load.
    #[error("the policies of agent `{agent}` do not load")]
    Policy {
        /// The agent.
        agent: String,
        /// What is wrong with them.
        #[source]
        source: LoadError,
    },
}

impl<A: Agent> Default for AgentBuilder<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Agent> AgentBuilder<A> {
    /// A builder without a store, a model or contexts.
    pub fn new() -> Self {
        Self {
            store: None,
            model: None,
            models: HashMap::new(),
            operator_role: None,
            hooks: Vec::new(),
            tools: Vec::new(),
            contexts: Contexts::new(),
            policies: None,
            facts: Vec::new(),
            directory: Arc::new(ClaimsOnly),
            settings: Settings::default(),
            agent: PhantomData,
        }
    }

    /// Where runs, calls and decisions are kept.
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// The model, instead of the one that the declaration names.
    pub fn model(mut self, model: impl ChatModel + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// The model of a sub-agent, by the agent's name, instead of the one that its declaration
    /// names. Without it, a sub-agent that names the same model as the agent above it shares
    /// that agent's.
    pub fn model_of(mut self, agent: impl Into<String>, model: impl ChatModel + 'static) -> Self {
        self.models.insert(agent.into(), Arc::new(model));
        self
    }

    /// Adds tools that are known at run time only, such as those of another server, or a
    /// [`ToolSet`](crate::tool::ToolSet), to an agent that is declared with `dynamic_tools`. They
    /// are gated, checked and stored as declared ones are, and are part of what a run is pinned to.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self
    where
        A: DynamicTools,
    {
        self.tools.extend(tools);
        self
    }

    /// Adds a hook, for the calls of this agent and of all agents below it.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Whoever has this role may cancel runs of others. Without it only the requester may.
    pub fn operator_role(mut self, role: impl Into<String>) -> Self {
        self.operator_role = Some(role.into());
        self
    }

    /// How long a hook, a predicate of a run or the directory may take to answer, before it counts
    /// as failed.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// How many calls of one step are executed at once; at least one.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.settings.concurrency = calls.max(1);
        self
    }

    /// State for tools that take a `#[ctx]` of this type.
    pub fn ctx<C: Send + Sync + 'static>(mut self, context: C) -> Self {
        self.contexts.insert(context);
        self
    }

    /// State for tools, shared with the application.
    pub fn ctx_shared<C: Send + Sync + 'static>(mut self, context: Arc<C>) -> Self {
        self.contexts.insert_shared(context);
        self
    }

    /// Policies instead of those of the declaration. With none at all the built-in policy is in
    /// force: every call may run unattended, anyone authenticated may approve.
    pub fn policies(mut self, policies: Vec<PolicySource>) -> Self {
        self.policies = Some(policies);
        self
    }

    /// Declares a fact about earlier calls, besides those of the declaration: see
    /// [`AgentDefinition::fact`].
    pub fn fact(mut self, fact: FactDeclaration) -> Self {
        self.facts.push(fact);
        self
    }

    /// The application's knowledge of its people.
    pub fn directory(mut self, directory: impl Directory + 'static) -> Self {
        self.directory = Arc::new(directory);
        self
    }

    /// How long a call waits for people unless its tool says otherwise.
    pub fn approval_ttl(mut self, ttl: Duration) -> Self {
        self.settings.approval_ttl = ttl;
        self
    }

    /// How long roles claimed with a decision count where no directory knows better.
    pub fn claims_age(mut self, age: Duration) -> Self {
        self.settings.claims_age = age;
        self
    }

    /// How long an instance may be silent before another one takes its run over; at least one
    /// second.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.max(Duration::from_secs(1));
        self
    }

    /// Checks everything that can be checked before the first run.
    ///
    /// # Errors
    ///
    /// When something is missing, two tools have one name, or the policies do not load.
    pub fn build(self) -> Result<Hosted<A>, BuildError> {
        let mut definition = A::definition();
        definition.tools.extend(self.tools);
        if let Some(policies) = self.policies {
            definition.policies = policies;
        }
        definition.facts.extend(self.facts);
        let agent = definition.name.clone();
        let store = self.store.ok_or_else(|| BuildError::NoStore {
            agent: agent.clone(),
        })?;
        let model = match self.model {
            Some(model) => model,
            None => named_model(&agent, &definition.model)?,
        };
        let shared = Shared {
            store,
            models: self.models,
            operator_role: self.operator_role,
            hooks: self.hooks.into(),
            contexts: Arc::new(self.contexts),
            directory: self.directory,
            settings: self.settings,
            // A name of no meaning: only that it is this instance's alone counts.
            instance: CallId::new().to_string(),
            active: Arc::default(),
        };
        let governing = Governing::root(&definition);
        let runtime = shared.runtime(&definition, &governing, model)?;
        Ok(Hosted::new(Arc::new(runtime)))
    }
}

/// What an agent and all agents below it have in common.
struct Shared {
    store: Store,
    models: HashMap<String, Arc<dyn ChatModel>>,
    operator_role: Option<String>,
    hooks: Arc<[Arc<dyn Hook>]>,
    contexts: Arc<Contexts>,
    directory: Arc<dyn Directory>,
    settings: Settings,
    instance: String,
    active: Arc<Active>,
}

impl Shared {
    fn runtime(
        &self,
        definition: &AgentDefinition,
        governing: &Governing<'_>,
        model: Arc<dyn ChatModel>,
    ) -> Result<Runtime, BuildError> {
        let agent = definition.name.clone();
        let agents = self.agents(definition, governing, &model)?;
        let tools = ToolSet::new(definition.all_tools().collect()).map_err(|source| {
            BuildError::DuplicateTool {
                agent: agent.clone(),
                source,
            }
        })?;
        for tool in tools.iter() {
            let spec = tool.spec();
            if let Some(context) = self.contexts.missing(&spec.contexts).first() {
                let tool = spec.name.clone();
                return Err(BuildError::MissingContext {
                    agent,
                    tool,
                    context,
                });
            }
            for label in &spec.labels {
                if let Err(rule) = check_label(label) {
                    let (tool, label) = (spec.name.clone(), label.clone());
                    return Err(BuildError::Label {
                        agent,
                        tool,
                        label,
                        rule,
                    });
                }
            }
        }
        let (policy, above) =
            governing
                .policies(definition)
                .map_err(|source| BuildError::Policy {
                    agent: agent.clone(),
                    source,
                })?;
        let schemas: HashMap<_, _> = tools
            .iter()
            .map(|tool| (tool.spec().name.clone(), tool.spec().schema_digest()))
            .collect();
        Ok(Runtime {
            definition: definition.digest(),
            defaults: definition.defaults.clone(),
            policy_text: governing.text(definition),
            instructions: definition.instructions.clone(),
            model,
            tools,
            schemas,
            agents,
            operator_role: self.operator_role.clone(),
            hooks: Arc::clone(&self.hooks),
            active: Arc::clone(&self.active),
            contexts: Arc::clone(&self.contexts),
            policy,
            above,
            store: self.store.clone(),
            directory: Arc::clone(&self.directory),
            settings: self.settings,
            instance: self.instance.clone(),
            recorded: tokio::sync::OnceCell::new(),
            agent,
        })
    }

    fn agents(
        &self,
        above: &AgentDefinition,
        governing: &Governing<'_>,
        model: &Arc<dyn ChatModel>,
    ) -> Result<HashMap<String, Arc<Runtime>>, BuildError> {
        let mut agents = HashMap::with_capacity(above.agents.len());
        for below in &above.agents {
            let name = below.name.clone();
            if let Err(rule) = check_name(&name) {
                let agent = above.name.clone();
                return Err(BuildError::AgentName { agent, name, rule });
            }
            let model = match self.models.get(&name) {
                Some(model) => Arc::clone(model),
                None if below.model == above.model => Arc::clone(model),
                None => named_model(&name, &below.model)?,
            };
            let runtime = self.runtime(below, &governing.below(above), model)?;
            agents.insert(name, Arc::new(runtime));
        }
        Ok(agents)
    }
}

fn named_model(agent: &str, model: &str) -> Result<Arc<dyn ChatModel>, BuildError> {
    let name: ModelName = model.parse().map_err(|source| BuildError::ModelName {
        agent: agent.to_owned(),
        source,
    })?;
    #[cfg(feature = "genai")]
    {
        use crate::model::{Retrying, genai::GenaiModel};
        let _ = name;
        let provider = GenaiModel::new(model).map_err(|source| BuildError::Model {
            model: model.to_owned(),
            source: source.into(),
        })?;
        Ok(Arc::new(Retrying::new(provider)))
    }
    #[cfg(not(feature = "genai"))]
    Err(BuildError::NoModel {
        agent: agent.to_owned(),
        model: name.to_string(),
    })
}
