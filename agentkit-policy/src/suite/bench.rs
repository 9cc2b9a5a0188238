//! A set of policies of which one after the other is changed: what stays as it is is read once.

use std::collections::{BTreeSet, HashMap};

use crate::declaration::{PolicySource, Settings, ToolDeclaration};
use crate::load::{LOAD_STACK, Read, parse_all};
use crate::load_error::LoadError;
use crate::policy::LoadedPolicy;
use crate::set::PolicySet;
use crate::slice::Schemas;
use crate::source::statements;
use crate::tool::{Tool, Vocabulary};

/// Tools and policies as they were read, and the schemas of the slices.
pub(crate) struct Bench<'a> {
    tools: Vec<Tool>,
    policies: Vec<LoadedPolicy>,
    vocabulary: Vocabulary,
    settings: &'a Settings,
    schemas: Schemas,
}

impl<'a> Bench<'a> {
    /// Reads tools and policies that are known to load.
    pub(crate) fn new(
        tools: &[ToolDeclaration],
        sources: &[PolicySource],
        settings: &'a Settings,
    ) -> Result<Self, LoadError> {
        let tools = Tool::read_all(tools, &settings.extension).map_err(LoadError::new)?;
        let vocabulary = Vocabulary::new(&tools);
        let policies = read(sources, &vocabulary, settings)?;
        Ok(Self {
            tools,
            policies,
            vocabulary,
            settings,
            schemas: Schemas::default(),
        })
    }

    /// Loads the set with the text of one policy changed, or without that policy, and cuts the
    /// slices of some tools only.
    pub(crate) fn with(
        &self,
        id: &str,
        text: Option<String>,
        only: &BTreeSet<&str>,
    ) -> Result<PolicySet, LoadError> {
        let source = text.map(|text| PolicySource::new(id, text));
        let changed = read(source.as_slice(), &self.vocabulary, self.settings)?;
        let others = self.policies.iter().filter(|policy| policy.id() != id);
        let mut policies: Vec<LoadedPolicy> = others.cloned().chain(changed).collect();
        policies.sort_by(|a, b| a.id().cmp(b.id()));
        let read = Read {
            tools: self.tools.clone(),
            policies,
            vocabulary: &self.vocabulary,
            settings: self.settings,
            built_in: false,
        };
        stacker::grow(LOAD_STACK, || {
            read.assemble(Vec::new(), HashMap::new(), Some(only), &self.schemas)
                .map_err(LoadError::new)
        })
    }
}

fn read(
    sources: &[PolicySource],
    vocabulary: &Vocabulary,
    settings: &Settings,
) -> Result<Vec<LoadedPolicy>, LoadError> {
    stacker::grow(LOAD_STACK, || {
        let all: Vec<_> = sources.iter().flat_map(statements).collect();
        let mut findings = Vec::new();
        let (policies, _) = parse_all(&all, vocabulary, settings, &mut findings);
        if findings.is_empty() {
            Ok(policies)
        } else {
            Err(LoadError::new(findings))
        }
    })
}
