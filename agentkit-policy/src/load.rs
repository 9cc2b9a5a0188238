//! From declarations and policy texts to a set in force, or to everything that is wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::answering::Answering;
use crate::declaration::{PolicySource, Settings, ToolDeclaration};
use crate::load_error::{Finding, LoadError};
use crate::policy::{LoadedPolicy, parse};
use crate::session::{fields, session_type};
use crate::set::{Held, PolicySet, nobodies};
use crate::slice::{Cutting, Preamble, Remarks, Schemas, digest};
use crate::source::{Statement, statements};
use crate::tool::{Tool, Vocabulary, preamble};

/// Stack for parsing and validation, whose recursion the bound on a policy's size limits.
pub(crate) const LOAD_STACK: usize = 64 * 1024 * 1024;

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
        let schemas = Schemas::default();
        load(Tool::unread_all(tools), &sources, settings, true, &schemas)
    }

    pub(crate) fn load(
        tools: &[ToolDeclaration],
        sources: &[PolicySource],
        settings: &Settings,
        schemas: &Schemas,
    ) -> Result<Self, LoadError> {
        load(
            Tool::read_all(tools, &settings.extension),
            sources,
            settings,
            false,
            schemas,
        )
    }
}

fn load(
    tools: Result<Vec<Tool>, Vec<Finding>>,
    sources: &[PolicySource],
    settings: &Settings,
    built_in: bool,
    schemas: &Schemas,
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
        load_on_stack(tools, sources, settings, built_in, schemas)
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
    schemas: &Schemas,
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
    let (policies, places) = parse_all(&all, &vocabulary, settings, &mut findings);
    let places = places.iter().map(|(id, at)| (id.as_str(), *at)).collect();
    let read = Read {
        tools,
        policies,
        vocabulary: &vocabulary,
        settings,
        built_in,
    };
    let set = read.assemble(findings, places, None, schemas);
    match set {
        Ok(mut set) => {
            set.warnings = in_order(set.warnings, sources);
            Ok(set)
        }
        Err(findings) => Err(LoadError::new(in_order(findings, sources))),
    }
}

/// Policies sorted by id, and where each id stands first.
type Parsed<'a> = (Vec<LoadedPolicy>, HashMap<String, &'a Statement<'a>>);

/// Parses statements; every finding is pushed.
pub(crate) fn parse_all<'a>(
    statements: &'a [Statement<'a>],
    vocabulary: &Vocabulary,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Parsed<'a> {
    let mut policies: Vec<LoadedPolicy> = Vec::with_capacity(statements.len());
    let mut places: HashMap<String, &Statement<'_>> = HashMap::new();
    for statement in statements {
        let Some(policy) = parse(statement, vocabulary, settings, findings) else {
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
    (policies, places)
}

/// What a set is assembled from.
pub(crate) struct Read<'a> {
    pub(crate) tools: Vec<Tool>,
    /// Sorted by id.
    pub(crate) policies: Vec<LoadedPolicy>,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) settings: &'a Settings,
    pub(crate) built_in: bool,
}

impl Read<'_> {
    /// Lints, cuts the slices and validates them; where `only` is given, those of some tools.
    /// `findings` are those made before.
    pub(crate) fn assemble(
        self,
        findings: Vec<Finding>,
        places: HashMap<&str, &Statement<'_>>,
        only: Option<&BTreeSet<&str>>,
        schemas: &Schemas,
    ) -> Result<PolicySet, Vec<Finding>> {
        let settings = self.settings;
        let preamble = preamble(settings);
        let mut schema_text = preamble.clone();
        let preamble = Preamble::read(preamble).map_err(|why| {
            let message = format!("the generated schema is not accepted: {why}");
            vec![Finding::about(message)]
        })?;
        for tool in &self.tools {
            let session = session_type(fields(tool, settings).iter());
            let session = session.as_deref();
            tool.declare([session; 3], &settings.extension, &mut schema_text);
        }
        let answering = Answering::new(&self.policies);
        let mut warnings = crate::lint::warnings(&self.tools, &self.policies, &answering);
        let mut remarks = Remarks {
            findings,
            ..Remarks::default()
        };
        let cutting = Cutting {
            preamble,
            answering: &answering,
            statements: places,
            vocabulary: self.vocabulary,
            settings,
            schemas,
        };
        let mut slices = BTreeMap::new();
        for tool in self.tools {
            if only.is_some_and(|only| !only.contains(tool.name())) {
                continue;
            }
            let name = tool.name().to_owned();
            if let Some(slice) = cutting.cut(tool, &mut remarks) {
                slices.insert(name, slice);
            }
        }
        if !remarks.findings.is_empty() {
            return Err(remarks.findings);
        }
        if !self.built_in {
            warnings.extend(crate::lint::without_effect(
                &self.policies,
                &remarks.impossible,
            ));
        }
        warnings.extend(remarks.warnings);
        let nobodies = nobodies(settings).map_err(|why| vec![Finding::about(why)])?;
        let facts = settings.facts.iter();
        let digest = digest(&schema_text, settings, facts, None, self.policies.iter());
        let held = |policy: LoadedPolicy| {
            let held = Held {
                about: policy.about,
                body: policy.body,
            };
            (held.about.id.clone(), held)
        };
        Ok(PolicySet {
            settings: settings.clone(),
            slices,
            policies: self.policies.into_iter().map(held).collect(),
            digest,
            built_in: self.built_in,
            schema_text,
            warnings,
            nobodies,
        })
    }
}
