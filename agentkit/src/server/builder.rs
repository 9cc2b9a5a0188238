use std::{collections::BTreeMap, sync::Arc};

use axum::Router;

use super::{Authenticator, Limits, api, layers, state::Shared};
use crate::{
    agent::{Agent, Hosted},
    run::Runtime,
};

/// Where people approve: [`Server::builder`] is the way to a router.
#[derive(Debug)]
#[non_exhaustive]
pub struct Server;

impl Server {
    /// Starts to build a server. Who someone is, `authenticator` says; there is no default.
    pub fn builder(authenticator: impl Authenticator) -> ServerBuilder {
        ServerBuilder {
            authenticator: Arc::new(authenticator),
            agents: Vec::new(),
            auditor_role: "auditor".to_owned(),
            limits: Limits::default(),
        }
    }
}

/// Builds a router.
#[must_use = "nothing is served until `build` is called and the router is mounted"]
pub struct ServerBuilder {
    authenticator: Arc<dyn Authenticator>,
    agents: Vec<Arc<Runtime>>,
    auditor_role: String,
    limits: Limits,
}

/// Why a server cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is no agent.
    #[error("the server hosts no agent; pass one to `agent`")]
    NoAgent,
    /// Two agents have one name.
    #[error("two agents are called `{name}`; runs are found by their agent's name")]
    DuplicateAgent {
        /// The name.
        name: String,
    },
    /// The agents do not share a database.
    #[error("agent `{name}` is on another store than the others; open one and clone it")]
    DifferentStores {
        /// The agent that differs from the first.
        name: String,
    },
    /// The description of the API cannot be written.
    #[error("the OpenAPI document cannot be written")]
    OpenApi(#[source] serde_json::Error),
}

impl ServerBuilder {
    /// Hosts an agent: its runs are started, decided and continued here.
    pub fn agent<A: Agent>(mut self, agent: &Hosted<A>) -> Self {
        self.agents.push(Arc::clone(agent.runtime()));
        self
    }

    /// Whoever has this role sees everything of their tenant and decides nothing by it:
    /// `auditor` unless said otherwise.
    pub fn auditor_role(mut self, role: impl Into<String>) -> Self {
        self.auditor_role = role.into();
        self
    }

    /// What the server takes upon itself.
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The router, to be served by [`serve`](super::serve) or nested into another one.
    ///
    /// # Errors
    ///
    /// When there is no agent, two have one name, or they are on different stores.
    pub fn build(self) -> Result<Router, ServerError> {
        let mut agents = BTreeMap::<String, Arc<Runtime>>::new();
        let first = self.agents.first().ok_or(ServerError::NoAgent)?;
        let store = first.store().clone();
        for runtime in &self.agents {
            let name = runtime.agent.clone();
            if !runtime.store().is(&store) {
                return Err(ServerError::DifferentStores { name });
            }
            if agents.insert(name.clone(), Arc::clone(runtime)).is_some() {
                return Err(ServerError::DuplicateAgent { name });
            }
        }
        let (routes, openapi) = api::routes();
        let openapi = openapi.to_json().map_err(ServerError::OpenApi)?;
        let server = Shared::new(
            agents,
            store,
            self.authenticator,
            self.auditor_role,
            self.limits,
            openapi,
        );
        Ok(layers::around(routes, &server).with_state(server))
    }
}
