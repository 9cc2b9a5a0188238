//! From declarations and policy texts to a set in force, or to everything that is wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::answering::Answering;
use crate::declaration::{PolicySource, Settings, ToolDeclaration};
use crate::load_error::{Finding, LoadError};
use crate::policy::{LoadedPolicy, parse};
use crate::session::{fields, session_type};
use crate::set::{Held, PolicySet, nobodies};
use crate::slice::{Cutting, Remarks, digest};
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
        load(Tool::unread_all(tools), &sources, settings, true, None)
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
            None,
        )
    }

    /// Loads all policies and cuts the slices of some tools only.
    #[cfg(feature = "suite")]
    pub(crate) fn load_some(
        tools: &[ToolDeclaration],
        sources: &[PolicySource],
        settings: &Settings,
        only: &BTreeSet<&str>,
    ) -> Result<Self, LoadError> {
        let tools = Tool::read_all(tools, &settings.extension);
        load(tools, sources, settings, false, Some(only))
    }
}

fn load(
    tools: Result<Vec<Tool>, Vec<Finding>>,
    sources: &[PolicySource],
    settings: &Settings,
    built_in: bool,
    only: Option<&BTreeSet<&str>>,
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
        load_on_stack(tools, sources, settings, built_in, only)
    })
}

/// In the order of files and lines, with the lines themselves.
fn in_order(mut findings: Vec<Finding>, sources: &[PolicySource]) -> Vec<Finding> {
    let position = |finding: &Finding| {
        let file = finding.file.as_deref()?;
        sources.iter().position(|source| source.name == file)
    };
    findings.sort_by_key(|finding| (position(finding), finding.line, finding.column));
    for finding in &mut findings {
        let source = position(finding).and_then(|index| sources.get(index));
        let line = finding.line.and_then(|line| usize::try_from(line).ok());
        finding.shown = source
            .zip(line)
            .and_then(|(source, line)| source.text.lines().nth(line.saturating_sub(1)))
            .map(str::to_owned);
    }
    findings
}

fn load_on_stack(
    tools: Vec<Tool>,
    sources: &[PolicySource],
    settings: &Settings,
    built_in: bool,
    only: Option<&BTreeSet<&str>>,
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
    let answering = Answering::new(&policies);
    let mut warnings = crate::lint::warnings(&tools, &policies, &answering);
    let mut remarks = Remarks {
        findings,
        ..Remarks::default()
    };
    let cutting = Cutting {
        preamble,
        answering: &answering,
        statements: places,
        vocabulary: &vocabulary,
        settings,
    };
    let mut slices = BTreeMap::new();
    for tool in tools {
        if only.is_some_and(|only| !only.contains(tool.name())) {
            continue;
        }
        let name = tool.name().to_owned();
        if let Some(slice) = cutting.cut(tool, &mut remarks) {
            slices.insert(name, slice);
        }
    }
    if !remarks.findings.is_empty() {
        return Err(LoadError::new(in_order(remarks.findings, sources)));
    }
    if !built_in {
        warnings.extend(crate::lint::without_effect(&policies, &remarks.impossible));
    }
    warnings.extend(remarks.warnings);
    let warnings = in_order(warnings, sources);
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
