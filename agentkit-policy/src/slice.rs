//! What can influence the decisions about one tool: its schema and its policies.
//!
//! A faulty or slow policy of another tool is not in the slice, so it can take nothing down here.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use cedar_policy::{
    Entity, EntityId, EntityTypeName, EntityUid, PolicySet as CedarPolicies, Schema,
    ValidationMode, Validator,
};
use miette::Diagnostic;
use sha2::{Digest as _, Sha256};

use crate::decision::Question;
use crate::declaration::Settings;
use crate::fact::FactDeclaration;
use crate::load_error::Finding;
use crate::mention::Mentions;
use crate::policy::{LoadedPolicy, lower};
use crate::session::{self, SessionField};
use crate::shape::{MAPPING_VERSION, quoted};
use crate::source::Statement;
use crate::tool::{Tool, Vocabulary};

/// Stack that Cedar's evaluator takes for one level of nesting without optimisation (measured:
/// 55 KiB), with room to spare; the test `the_tallest_policy_has_the_stack_it_needs` watches it.
const STACK_PER_LEVEL: usize = 64 * 1024;
/// Stack for everything else: mapping, entities, and Cedar's own reserve of 100 KiB.
const STACK_BASE: usize = 512 * 1024;

/// The policies of one question about one tool.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) action: EntityUid,
    pub(crate) policies: CedarPolicies,
    /// The same with the policies in `@mode("log_only")`; none where there are no such.
    pub(crate) with_shadow: Option<CedarPolicies>,
    /// The facts of `context.session` that the policies read.
    pub(crate) session: Vec<SessionField>,
    /// The same with the policies in `@mode("log_only")`.
    pub(crate) shadow_session: Vec<SessionField>,
}

#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) tool: Tool,
    pub(crate) schema: Schema,
    /// The same with what only policies in `@mode("log_only")` read; none where that is nothing.
    pub(crate) shadow_schema: Option<Schema>,
    /// The actions, as members of their groups.
    pub(crate) actions: Vec<Entity>,
    asked: [Asked; 3],
    pub(crate) digest: [u8; 32],
    /// Bytes of stack that answering takes at most.
    pub(crate) stack: usize,
}

impl Slice {
    pub(crate) fn asked(&self, question: Question) -> &Asked {
        let [unattended, approved, approve] = &self.asked;
        match question {
            Question::Unattended => unattended,
            Question::Approved => approved,
            Question::Approve => approve,
        }
    }

    pub(crate) fn has_shadow(&self) -> bool {
        self.asked.iter().any(|asked| asked.with_shadow.is_some())
    }
}

/// Cuts the slice of one tool and validates it; every finding is pushed.
pub(crate) fn cut(
    tool: Tool,
    preamble: &str,
    policies: &[LoadedPolicy],
    statements: &HashMap<&str, &Statement<'_>>,
    vocabulary: &Vocabulary,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Option<Slice> {
    let before = findings.len();
    let of_question = |question: Question| {
        let action = question.action(tool.name());
        let ancestors = tool.ancestors(question);
        policies
            .iter()
            .filter(move |policy| policy.answers(question, &action, &ancestors))
    };
    let mut members: Vec<&LoadedPolicy> = Question::ALL.into_iter().flat_map(of_question).collect();
    members.sort_by(|a, b| a.id().cmp(b.id()));
    members.dedup_by(|a, b| a.id() == b.id());

    for policy in &members {
        unreadable_facts(policy, &tool, settings, statements, findings);
    }
    let fields = session::fields(&tool, settings);
    let read = |log_only: bool| {
        Question::ALL.map(|question| {
            let mentions = of_question(question)
                .filter(|policy| log_only || !policy.log_only)
                .map(|policy| policy.mentions.clone())
                .fold(Mentions::default(), Mentions::and);
            session::read_fields(&fields, &mentions)
        })
    };
    let (session, shadow_session) = (read(false), read(true));
    let declare = |read: &[Vec<SessionField>; 3]| {
        let types = read
            .each_ref()
            .map(|read| session::session_type(read.iter()));
        let mut text = preamble.to_owned();
        let types = types.each_ref().map(Option::as_deref);
        tool.declare(types, &settings.extension, &mut text);
        text
    };
    let declared = declare(&session);
    let schemas = schema(&declared, &tool, &members, vocabulary).and_then(|own| {
        if session == shadow_session {
            return Ok((own, None));
        }
        let shadow = schema(&declare(&shadow_session), &tool, &members, vocabulary)?;
        Ok((own, Some(shadow)))
    });
    let (schema, shadow_schema) = match schemas {
        Ok(schemas) => schemas,
        Err(message) => {
            findings.push(
                Finding::about(format!("the generated schema is not accepted: {message}"))
                    .suggest("rename the property it names, or declare it as any JSON")
                    .tool_named(tool.name()),
            );
            return None;
        }
    };
    if findings.len() > before {
        return None;
    }
    let validated = shadow_schema.as_ref().unwrap_or(&schema);
    let level = 1 + tool.input.level() + settings.extension.level();
    validate(&tool, validated, level, &members, statements, findings);
    let actions = match actions(&tool) {
        Ok(actions) => actions,
        Err(message) => {
            findings.push(Finding::about(message).tool_named(tool.name()));
            return None;
        }
    };
    let asked = |question: Question,
                 session: Vec<SessionField>,
                 shadow_session: Vec<SessionField>|
     -> Result<Asked, String> {
        let of = |log_only: bool| -> Result<CedarPolicies, String> {
            CedarPolicies::from_policies(
                of_question(question)
                    .filter(|policy| log_only || !policy.log_only)
                    .map(|policy| policy.policy.clone()),
            )
            .map_err(|error| error.to_string())
        };
        let shadows = of_question(question).any(|policy| policy.log_only);
        Ok(Asked {
            action: action_uid(&question.action(tool.name()))?,
            policies: of(false)?,
            with_shadow: if shadows { Some(of(true)?) } else { None },
            session,
            shadow_session,
        })
    };
    let read_by_deciding: Vec<String> = session
        .iter()
        .flatten()
        .map(|field| field.name.clone())
        .collect();
    let all = || -> Result<[Asked; 3], String> {
        let [unattended, approved, approve] = Question::ALL;
        let ([s1, s2, s3], [w1, w2, w3]) = (session, shadow_session);
        Ok([
            asked(unattended, s1, w1)?,
            asked(approved, s2, w2)?,
            asked(approve, s3, w3)?,
        ])
    };
    let asked = match all() {
        Ok(asked) => asked,
        Err(message) => {
            findings.push(Finding::about(lower(&message)).tool_named(tool.name()));
            return None;
        }
    };
    if findings.len() > before {
        return None;
    }
    let height = members
        .iter()
        .map(|policy| policy.height)
        .max()
        .unwrap_or(0);
    let deciding = members.iter().filter(|policy| !policy.log_only).copied();
    let facts = settings
        .facts
        .iter()
        .filter(|fact| read_by_deciding.contains(&fact.name));
    let digest = digest(&declared, settings, facts, Some(&tool), deciding);
    Some(Slice {
        schema,
        shadow_schema,
        actions,
        asked,
        digest,
        stack: STACK_BASE + height * STACK_PER_LEVEL,
        tool,
    })
}

/// SHA-256 over policies (sorted by id), schema, mapping version and what else decides.
pub(crate) fn digest<'a>(
    schema: &str,
    settings: &Settings,
    facts: impl Iterator<Item = &'a FactDeclaration>,
    tool: Option<&Tool>,
    policies: impl Iterator<Item = &'a LoadedPolicy>,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        // The length goes first, so that no two lists of parts hash alike.
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(text.as_bytes());
    };
    part("agentkit policy slice");
    part(&MAPPING_VERSION.to_string());
    part(&cedar_policy::get_lang_version().to_string());
    part(&settings.max_quorum.to_string());
    part(&settings.max_approval_age.as_millis().to_string());
    part(schema);
    for fact in facts {
        // The schema holds its type; its window and scope decide too.
        part(&serde_json::to_string(fact).unwrap_or_else(|_| format!("{fact:?}")));
    }
    if let Some(tool) = tool {
        let of = &tool.declaration;
        part(&format!(
            "{} {} {} {}",
            of.read_only, of.destructive, of.idempotent, of.require_approval
        ));
    }
    for policy in policies {
        part(policy.id());
        part(&policy.canonical);
        if tool.is_none() {
            part(&policy.annotations);
        }
    }
    hash.finalize().into()
}

/// The actions of a tool, each a direct member of all its groups: nobody asks for the groups of
/// groups, so these need not be there.
fn actions(tool: &Tool) -> Result<Vec<Entity>, String> {
    Question::ALL
        .into_iter()
        .map(|question| {
            let groups: Result<_, String> = tool
                .ancestors(question)
                .iter()
                .map(|group| action_uid(group))
                .collect();
            let action = action_uid(&question.action(tool.name()))?;
            Ok(Entity::new_no_attrs(action, groups?))
        })
        .collect()
}

fn action_uid(name: &str) -> Result<EntityUid, String> {
    let kind: EntityTypeName = "Action"
        .parse()
        .map_err(|error: cedar_policy::ParseErrors| error.to_string())?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(name)))
}

/// The schema of one tool, with the actions of other tools that its policies mention as bare
/// names: they apply to nothing here.
fn schema(
    declared: &str,
    tool: &Tool,
    members: &[&LoadedPolicy],
    vocabulary: &Vocabulary,
) -> Result<Schema, String> {
    let own: BTreeSet<String> = Question::ALL
        .into_iter()
        .map(|question| question.action(tool.name()))
        .collect();
    let mut text = declared.to_owned();
    let mentioned: BTreeSet<&String> = members.iter().flat_map(|p| &p.actions).collect();
    for action in mentioned {
        let of_tool = matches!(vocabulary.get(action), Some(crate::tool::Named::Tool(_)));
        if of_tool && !own.contains(action) {
            let _ = writeln!(text, "action {};", quoted(action));
        }
    }
    Schema::from_cedarschema_str(&text)
        .map(|(schema, _)| schema)
        .map_err(|error| error.to_string())
}

/// Facts that a policy reads and that are not there for this tool.
fn unreadable_facts(
    policy: &LoadedPolicy,
    tool: &Tool,
    settings: &Settings,
    statements: &HashMap<&str, &Statement<'_>>,
    findings: &mut Vec<Finding>,
) {
    let everything = [String::from("this")];
    let whole = policy.mentions.everything;
    let declared = settings.facts.iter().map(|fact| &fact.name);
    let names: Vec<&String> = match whole {
        true => everything.iter().chain(declared).collect(),
        false => policy.mentions.names.iter().collect(),
    };
    for name in names {
        // Who handles the session as a whole sees what there is, and must be handed all of it.
        let Some(finding) = session::unreadable(name, tool, settings)
            .filter(|finding| !whole || finding.message.contains("not computed"))
        else {
            continue;
        };
        let last = name.rsplit('.').next().unwrap_or(name);
        let place = statements.get(policy.id()).map(|statement| {
            let offset = statement.text.find(last).unwrap_or(0);
            statement.place(offset)
        });
        let (line, column) = place.unzip();
        let finding = Finding {
            line: line.or(Some(policy.about.line)),
            column: column.or(Some(policy.column)),
            message: finding.message,
            suggestion: finding.suggestion,
            ..policy.finding("").tool_named(tool.name())
        };
        let same =
            |known: &Finding| known.policy == finding.policy && known.message == finding.message;
        if !findings.iter().any(same) {
            findings.push(finding);
        }
    }
}

fn validate(
    tool: &Tool,
    schema: &Schema,
    level: u32,
    members: &[&LoadedPolicy],
    statements: &HashMap<&str, &Statement<'_>>,
    findings: &mut Vec<Finding>,
) {
    if members.is_empty() {
        return;
    }
    let set = match CedarPolicies::from_policies(members.iter().map(|p| p.policy.clone())) {
        Ok(set) => set,
        Err(error) => {
            findings.push(Finding::about(lower(&error.to_string())).tool_named(tool.name()));
            return;
        }
    };
    let result =
        Validator::new(schema.clone()).validate_with_level(&set, ValidationMode::Strict, level);
    let mut errors: Vec<_> = result.validation_errors().collect();
    // Cedar reports them in no particular order.
    errors.sort_by_cached_key(ToString::to_string);
    for error in errors {
        let id = error.policy_id().to_string();
        let offset = error
            .labels()
            .and_then(|mut labels| labels.next())
            .map_or(0, |label| label.offset());
        let text = error.to_string();
        let message = text
            .strip_prefix(&format!("for policy `{id}`, "))
            .unwrap_or(&text);
        let place = statements.get(id.as_str());
        let (line, column) = place.map(|statement| statement.place(offset)).unzip();
        let finding = Finding {
            file: place.map(|statement| statement.source.name.clone()),
            line,
            column,
            policy: Some(id),
            ..Finding::about(lower(message)).tool_named(tool.name())
        };
        let finding = match error.help() {
            Some(help) => finding.suggest(help.to_string()),
            None => finding,
        };
        // A policy fails alike for each question and each tool of a group; once is enough.
        let same = |known: &Finding| {
            known.policy == finding.policy
                && (known.line, known.column) == (finding.line, finding.column)
        };
        if !findings.iter().any(same) {
            findings.push(finding);
        }
    }
    if !result.validation_passed() && findings.is_empty() {
        findings.push(Finding::about("validation failed").tool_named(tool.name()));
    }
}
