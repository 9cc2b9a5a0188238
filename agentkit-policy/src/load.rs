//! From declarations and policy texts to a set in force, or to everything that is wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::declaration::{PolicySource, Settings, ToolDeclaration};
use crate::load_error::{Finding, LoadError};
use crate::policy::{LoadedPolicy, parse};
use crate::session::{fields, session_type};
use crate::set::{Held, PolicySet, nobodies};
use crate::slice::{cut, digest};
use crate::source::{Statement, statements};
use crate::tool::{Tool, Vocabulary, preamble};

/// Stack for parsing and validation, whose recursion the bound on a policy's size limits.
const LOAD_STACK: usize = 64 * 1024 * 1024;

const BUILT_IN: &str = r#"
@id("agentkit:built-in-every-call-runs-alone")
@title("Every call runs alone")
@why("No policy set is given")
permit (principal, action in Action::"all tools unattended", resource);

@id("agentkit:built-in-anyone-approves")
@title("Anyone authenticated approves")
@why("No policy set is given")
permit (principal, action in Action::"approve all tools", resource);
"#;

impl PolicySet {
    pub(crate) fn built_in(
        tools: &[ToolDeclaration],
        settings: &Settings,
    ) -> Result<Self, LoadError> {
        let sources = [PolicySource::new("agentkit built-in", BUILT_IN)];
        load(Tool::unread_all(tools), &sources, settings, true)
    }

    pub(crate) fn load(
        tools: &[ToolDeclaration],
        sources: &[PolicySource],
        settings: &Settings,
    ) -> Result<Self, LoadError> {
        load(
            Tool::read_all(tools, &settings.extension),
            sources,
            settings,
            false,
        )
    }
}

fn load(
    tools: Result<Vec<Tool>, Vec<Finding>>,
    sources: &[PolicySource],
    settings: &Settings,
    built_in: bool,
) -> Result<PolicySet, LoadError> {
    let tools = tools.map_err(LoadError::new)?;
    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    if bytes > settings.max_policy_bytes {
        let finding = Finding::about(format!("the policies hold {bytes} bytes")).suggest(format!(
            "at most {} are allowed; raise `Settings::max_policy_bytes` or remove policies",
            settings.max_policy_bytes
        ));
        return Err(LoadError::new(vec![finding]));
    }
    stacker::grow(LOAD_STACK, || {
        load_on_stack(tools, sources, settings, built_in)
    })
}

fn load_on_stack(
    tools: Vec<Tool>,
    sources: &[PolicySource],
    settings: &Settings,
    built_in: bool,
) -> Result<PolicySet, LoadError> {
    let mut findings = Vec::new();
    if !built_in {
        findings.extend(settings.extension.check(&settings.user_attributes));
        findings.extend(crate::session::check(settings, &tools));
    }
    if !findings.is_empty() {
        // Policies cannot be checked against a vocabulary that does not hold together.
        return Err(LoadError::new(findings));
    }
    let vocabulary = Vocabulary::new(&tools);
    let all: Vec<Statement<'_>> = sources.iter().flat_map(statements).collect();
    let mut policies: Vec<LoadedPolicy> = Vec::with_capacity(all.len());
    let mut places: HashMap<String, &Statement<'_>> = HashMap::new();
    for statement in &all {
        let Some(policy) = parse(statement, &vocabulary, settings, &mut findings) else {
            continue;
        };
        if let Some(first) = places.get(policy.id()) {
            let (line, _) = first.place(0);
            findings.push(
                policy
                    .finding(format!(
                        "the id is taken by the policy at {}:{line}",
                        first.source.name
                    ))
                    .suggest("give each policy an id of its own"),
            );
            continue;
        }
        places.insert(policy.id().to_owned(), statement);
        policies.push(policy);
    }
    policies.sort_by(|a, b| a.id().cmp(b.id()));
    let places: HashMap<&str, &Statement<'_>> =
        places.iter().map(|(id, at)| (id.as_str(), *at)).collect();
    let preamble = preamble(settings);
    let mut schema_text = preamble.clone();
    for tool in &tools {
        let session = session_type(fields(tool, settings).iter());
        let session = session.as_deref();
        tool.declare([session; 3], &settings.extension, &mut schema_text);
    }
    let warnings = crate::lint::warnings(&tools, &policies);
    let mut slices = BTreeMap::new();
    for tool in tools {
        let name = tool.name().to_owned();
        let slice = cut(
            tool,
            &preamble,
            &policies,
            &places,
            &vocabulary,
            settings,
            &mut findings,
        );
        if let Some(slice) = slice {
            slices.insert(name, slice);
        }
    }
    if !findings.is_empty() {
        let order: BTreeSet<(&str, usize)> = sources
            .iter()
            .enumerate()
            .map(|(index, source)| (source.name.as_str(), index))
            .collect();
        findings.sort_by_key(|finding| {
            let file = finding.file.as_deref().unwrap_or_default();
            let position = order
                .iter()
                .find(|(name, _)| *name == file)
                .map(|(_, index)| *index);
            (position, finding.line, finding.column)
        });
        return Err(LoadError::new(findings));
    }
    let nobodies = nobodies(settings).map_err(|why| LoadError::new(vec![Finding::about(why)]))?;
    let facts = settings.facts.iter();
    let digest = digest(&schema_text, settings, facts, None, policies.iter());
    Ok(PolicySet {
        settings: settings.clone(),
        slices,
        policies: policies
            .into_iter()
            .map(|policy| {
                let held = Held {
                    about: policy.about,
                    body: policy.body,
                };
                (held.about.id.clone(), held)
            })
            .collect(),
        digest,
        built_in,
        schema_text,
        warnings,
        nobodies,
    })
}
