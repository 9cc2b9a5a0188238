//! A team of agents: a lead hands tasks to a clerk and to a guide, the clerk hands tasks to a
//! cashier, the cashier to a teller.

use agentkit::{
    agent::{AgentBuilder, AgentDefinition, PendingError, PendingSet, ResumeSet},
    approval::PendingCall,
    call::{Canonical, CanonicalError},
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
    tool::{ArgumentError, erase},
};
use serde_json::{Value, json};

use crate::desk::*;

/// A pending call as it is.
#[derive(Debug)]
pub struct AnyCall(pub PendingCall);

impl PendingSet for AnyCall {
    fn from_call(call: PendingCall) -> Result<Self, PendingError> {
        Ok(Self(call))
    }
}

/// Answers are given untyped.
pub enum NoAnswer {}

impl ResumeSet for NoAnswer {
    fn decode(_: &str, _: &Value) -> Result<Self, ArgumentError> {
        unreachable!()
    }

    fn tool(&self) -> &str {
        match *self {}
    }

    fn encode(&self) -> Result<Canonical, CanonicalError> {
        match *self {}
    }
}

fn definition(name: &str) -> AgentDefinition {
    AgentDefinition::new(name, "test/scripted", format!("You are the {name}."))
}

pub struct Lead;

impl Agent for Lead {
    type Pending = AnyCall;
    type Resume = NoAnswer;

    fn definition() -> AgentDefinition {
        let teller = definition("teller").tool(erase::<pay>());
        let cashier = definition("cashier").tool(erase::<pay>()).agent(teller);
        let clerk = definition("clerk")
            .tools([erase::<pay>(), erase::<balance>(), erase::<send>()])
            .agent(cashier);
        let guide = definition("guide").tool(erase::<choose>());
        definition("lead")
            .tool(erase::<balance>())
            .agent(clerk)
            .agent(guide)
    }
}

/// What each agent of the team does.
pub struct Team {
    pub lead: ScriptedModel,
    pub clerk: ScriptedModel,
    pub guide: ScriptedModel,
    pub cashier: ScriptedModel,
    pub teller: ScriptedModel,
}

impl Default for Team {
    /// Everyone repeats what they were told.
    fn default() -> Self {
        Self {
            lead: echo(),
            clerk: echo(),
            guide: echo(),
            cashier: echo(),
            teller: echo(),
        }
    }
}

impl Team {
    pub async fn host(self, world: &World) -> Hosted<Lead> {
        self.builder(world).await.build().unwrap()
    }

    pub async fn builder(self, world: &World) -> AgentBuilder<Lead> {
        world
            .builder::<Lead>(self.lead)
            .await
            .model_of("clerk", self.clerk)
            .model_of("guide", self.guide)
            .model_of("cashier", self.cashier)
            .model_of("teller", self.teller)
    }
}

pub fn hands(to: &str, task: &str) -> Reply {
    Reply::calls().call(to, &json!({ "task": task }))
}
