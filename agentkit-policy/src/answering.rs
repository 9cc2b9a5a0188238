//! Which policies answer which question about which tool, found by the actions that they name.

use std::collections::HashMap;

use crate::decision::Question;
use crate::policy::{LoadedPolicy, Scope};
use crate::tool::Tool;

/// All policies of a set, by the actions that their scopes name.
pub(crate) struct Answering<'a> {
    policies: &'a [LoadedPolicy],
    named: HashMap<&'a str, Vec<usize>>,
    /// Forbids on everything.
    everywhere: Vec<usize>,
}

impl<'a> Answering<'a> {
    /// `policies` are sorted by id.
    pub(crate) fn new(policies: &'a [LoadedPolicy]) -> Self {
        let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut everywhere = Vec::new();
        for (index, policy) in policies.iter().enumerate() {
            match &policy.scope {
                Scope::ForbidAll => everywhere.push(index),
                Scope::ForbidOne(action) => named.entry(action).or_default().push(index),
                Scope::ForbidIn(actions) | Scope::Permit { actions, .. } => {
                    for action in actions {
                        named.entry(action).or_default().push(index);
                    }
                }
            }
        }
        Self {
            policies,
            named,
            everywhere,
        }
    }

    /// The policies that answer a question about a tool, sorted by id.
    pub(crate) fn of(&self, tool: &Tool, question: Question) -> Vec<&'a LoadedPolicy> {
        let action = question.action(tool.name());
        let ancestors = tool.ancestors(question);
        let names = std::iter::once(&action).chain(&ancestors);
        let mut found: Vec<usize> = names
            .filter_map(|name| self.named.get(name.as_str()))
            .flatten()
            .chain(&self.everywhere)
            .copied()
            .collect();
        found.sort_unstable();
        found.dedup();
        found
            .into_iter()
            .filter_map(|index| self.policies.get(index))
            .filter(|policy| policy.answers(question, &action, &ancestors))
            .collect()
    }
}
