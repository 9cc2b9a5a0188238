//! Which policies judge the calls of an agent: its own, and those of the agents above it. An agent
//! that has none is judged by those above alone, and by the built-in one where nobody has any.

use std::collections::HashSet;

use agentkit_policy::{LoadError, PolicyEngine, Settings, ToolDeclaration};

use super::AgentDefinition;

/// The place of an agent among others.
#[derive(Clone)]
pub(super) struct Governing<'a> {
    root: &'a AgentDefinition,
    /// From the root down.
    above: Vec<&'a AgentDefinition>,
}

impl<'a> Governing<'a> {
    pub(super) fn root(root: &'a AgentDefinition) -> Self {
        Self {
            root,
            above: Vec::new(),
        }
    }

    /// The place of the agents below `agent`.
    pub(super) fn below(&self, agent: &'a AgentDefinition) -> Self {
        let mut below = self.clone();
        below.above.push(agent);
        below
    }

    /// The policies that judge `agent`, its own first; one at least.
    pub(super) fn policies(
        &self,
        agent: &AgentDefinition,
    ) -> Result<(PolicyEngine, Vec<PolicyEngine>), LoadError> {
        let vocabulary = self.vocabulary(agent);
        let above = self.above.iter().rev().copied();
        let mut engines = std::iter::once(agent)
            .chain(above)
            .filter(|governor| !governor.policies.is_empty())
            .map(|governor| {
                let facts = governor.facts.iter().cloned();
                let settings = facts.fold(Settings::default(), Settings::fact);
                PolicyEngine::load_with(vocabulary.clone(), &governor.policies, settings)
            });
        match engines.next() {
            Some(first) => Ok((first?, engines.collect::<Result<_, _>>()?)),
            None => Ok((PolicyEngine::built_in(vocabulary)?, Vec::new())),
        }
    }

    /// The tools that policies can name: the agent's own, and those of all others with which it
    /// works. Where two have one name, the agent's own is meant.
    fn vocabulary(&self, agent: &AgentDefinition) -> Vec<ToolDeclaration> {
        let mut tools = agent.tool_declarations();
        let mut known: HashSet<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let mut others = vec![self.root];
        while let Some(other) = others.pop() {
            let declared = other.tool_declarations().into_iter();
            tools.extend(declared.filter(|tool| known.insert(tool.name.clone())));
            others.extend(&other.agents);
        }
        tools
    }

    /// Checks the policies of `agent` and of all below it.
    pub(super) fn check(&self, agent: &'a AgentDefinition) -> Result<(), LoadError> {
        self.policies(agent)?;
        let below = self.below(agent);
        agent.agents.iter().try_for_each(|agent| below.check(agent))
    }

    /// The texts of the policies that judge `agent`, its own first.
    pub(super) fn text(&self, agent: &AgentDefinition) -> String {
        let above = self.above.iter().rev().copied();
        let sources = std::iter::once(agent)
            .chain(above)
            .flat_map(|governor| &governor.policies);
        let texts: Vec<&str> = sources.map(|source| source.text.as_str()).collect();
        texts.join("\n")
    }
}
