use std::{collections::HashMap, marker::PhantomData, sync::Arc, time::Duration};

use agentkit_policy::{LoadError, PolicySource};

use super::{Agent, Hosted};
use crate::{
    approval::{ClaimsOnly, Directory},
    call::CallId,
    model::{ChatModel, ModelName, ModelNameError},
    run::{Runtime, Settings},
    store::Store,
    tool::{Contexts, DuplicateTool, ToolSet},
};

/// Builds what hosts an agent: its store, its model, and the state that its tools are given.
#[must_use = "nothing is hosted until `build` is called"]
pub struct AgentBuilder<A> {
    store: Option<Store>,
    model: Option<Arc<dyn ChatModel>>,
    contexts: Contexts,
    policies: Option<Vec<PolicySource>>,
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
            contexts: Contexts::new(),
            policies: None,
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
        if let Some(policies) = self.policies {
            definition.policies = policies;
        }
        let agent = definition.name.clone();
        let store = self.store.ok_or_else(|| BuildError::NoStore {
            agent: agent.clone(),
        })?;
        let model = match self.model {
            Some(model) => model,
            None => named_model(&agent, &definition.model)?,
        };
        let tools =
            ToolSet::new(definition.tools.clone()).map_err(|source| BuildError::DuplicateTool {
                agent: agent.clone(),
                source,
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
        }
        let policy = definition
            .policy_engine()
            .map_err(|source| BuildError::Policy {
                agent: agent.clone(),
                source,
            })?;
        let schemas: HashMap<_, _> = tools
            .iter()
            .map(|tool| (tool.spec().name.clone(), tool.spec().schema_digest()))
            .collect();
        let policy_text = definition
            .policies
            .iter()
            .map(|policy| policy.text.as_str())
            .collect::<Vec<_>>();
        let runtime = Runtime {
            definition: definition.digest(),
            policy_text: policy_text.join("\n"),
            instructions: definition.instructions,
            model,
            tools,
            schemas,
            contexts: Arc::new(self.contexts),
            policy,
            store,
            directory: self.directory,
            settings: self.settings,
            // A name of no meaning: only that it is this instance's alone counts.
            instance: CallId::new().to_string(),
            recorded: tokio::sync::OnceCell::new(),
            agent,
        };
        Ok(Hosted::new(Arc::new(runtime)))
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
