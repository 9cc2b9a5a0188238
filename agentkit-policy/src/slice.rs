//! What can influence the decisions about one tool: its schema and its policies.
//!
//! A faulty or slow policy of another tool is not in the slice, so it can take nothing down here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use cedar_policy::pst::ActionConstraint;
use cedar_policy::{Entities, EntityId, EntityUid, Schema, SchemaFragment};
use sha2::{Digest as _, Sha256};

use crate::answering::Answering;
use crate::cedar::{Entity, Hierarchy, Value, with_entities};
use crate::context_type::ContextType;
use crate::decision::Question;
use crate::declaration::Settings;
use crate::entities::type_name;
use crate::fact::FactDeclaration;
use crate::index::Policies;
use crate::load_error::Finding;
use crate::mention::Mentions;
use crate::policy::{LoadedPolicy, lower};
use crate::session::{self, SessionField};
use crate::set::nobodies;
use crate::shape::{MAPPING_VERSION, quoted};
use crate::source::Statement;
use crate::tool::{Tool, Vocabulary};
use crate::validate::{unreadable_facts, validate};

/// Stack that Cedar's evaluator takes for one level of nesting without optimisation (measured:
/// 55 KiB), with room to spare; the test `the_tallest_policy_has_the_stack_it_needs` watches it.
const STACK_PER_LEVEL: usize = 64 * 1024;
/// Stack for everything else: mapping, entities, and Cedar's own reserve of 100 KiB.
const STACK_BASE: usize = 512 * 1024;

/// The policies of one question about one tool.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) action: EntityUid,
    pub(crate) policies: Policies,
    /// The same with the policies in `@mode("log_only")`; none where there are no such.
    pub(crate) with_shadow: Option<Policies>,
    /// The facts of `context.session` that the policies read.
    pub(crate) session: Vec<SessionField>,
    /// The same with the policies in `@mode("log_only")`.
    pub(crate) shadow_session: Vec<SessionField>,
    /// What the question may be asked with.
    pub(crate) context: ContextType,
    /// The same under [`Slice::shadow_schema`].
    pub(crate) shadow_context: Option<ContextType>,
}

#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) tool: Tool,
    pub(crate) schema: Schema,
    /// The same with what only policies in `@mode("log_only")` read; none where that is nothing.
    pub(crate) shadow_schema: Option<Schema>,
    /// What every call adds its entities to: the actions, as members of their groups, and the
    /// hypothetical approvers.
    pub(crate) always: Entities,
    /// `context.tool`, which is the same for every call.
    pub(crate) hints: Value,
    asked: [Asked; 3],
    pub(crate) digest: [u8; 32],
    /// Bytes of stack that answering takes at most.
    pub(crate) stack: usize,
    /// Who measures what is asked.
    #[cfg(feature = "suite")]
    pub(crate) listener: Option<crate::heard::Listener>,
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

/// What slices are cut from.
pub(crate) struct Cutting<'a> {
    /// The entity types and groups that every tool's schema begins with.
    pub(crate) preamble: Preamble,
    pub(crate) answering: &'a Answering<'a>,
    pub(crate) statements: HashMap<&'a str, &'a Statement<'a>>,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) settings: &'a Settings,
    pub(crate) schemas: &'a Schemas,
}

/// The schemas that were read already, by their text. Reading them is most of what a load costs,
/// and of one load to the next most stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Schemas(Mutex<HashMap<String, Schema>>);

impl Schemas {
    /// More than this are not kept; policies that are edited again and again must not fill memory.
    const MOST: usize = 4_096;

    /// Reads a text that begins with `preamble`, which was read already.
    fn read(&self, preamble: &Preamble, text: String) -> Result<Schema, String> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = kept().get(&text) {
            return Ok(schema.clone());
        }
        let own = text.strip_prefix(&preamble.text).unwrap_or(&text);
        let (own, _) = SchemaFragment::from_cedarschema_str(own).map_err(|e| e.to_string())?;
        let schema = Schema::from_schema_fragments([preamble.fragment.clone(), own])
            .map_err(|error| error.to_string())?;
        let mut kept = kept();
        if kept.len() >= Self::MOST {
            kept.clear();
        }
        kept.insert(text, schema.clone());
        Ok(schema)
    }
}

/// What every tool's schema begins with.
pub(crate) struct Preamble {
    text: String,
    fragment: SchemaFragment,
}

impl Preamble {
    pub(crate) fn read(text: String) -> Result<Self, String> {
        let (fragment, _) =
            SchemaFragment::from_cedarschema_str(&text).map_err(|error| error.to_string())?;
        Ok(Self { text, fragment })
    }
}

/// What the cutting of a slice came upon.
#[derive(Default)]
pub(crate) struct Remarks {
    /// What stands in the way of the load.
    pub(crate) findings: Vec<Finding>,
    /// In how many slices each policy is, and in how many it can never match.
    pub(crate) impossible: BTreeMap<String, (usize, usize)>,
    /// What is worth a look.
    pub(crate) warnings: Vec<Finding>,
}

/// The policies that answer the questions about a tool.
type Own<'a> = [Vec<&'a LoadedPolicy>; 3];
/// The facts that a tool's policies read, by question.
type Reads = [Vec<SessionField>; 3];

impl Cutting<'_> {
    /// Cuts the slice of one tool and validates it; every finding is pushed.
    pub(crate) fn cut(&self, tool: Tool, remarks: &mut Remarks) -> Option<Slice> {
        let before = remarks.findings.len();
        let own = Question::ALL.map(|question| self.answering.of(&tool, question));
        let members = members(&own);
        for policy in &members {
            unreadable_facts(policy, &tool, self, &mut remarks.findings);
        }
        let reads = self.reads(&tool, &own, false);
        let shadow_reads = if members.iter().any(|policy| policy.log_only) {
            self.reads(&tool, &own, true)
        } else {
            reads.clone()
        };
        let declared = self.declare(&tool, &reads);
        let schemas = self.schema(&declared, &tool, &members).and_then(|own| {
            if reads == shadow_reads {
                return Ok((own, None));
            }
            let text = self.declare(&tool, &shadow_reads);
            let shadow = self.schema(&text, &tool, &members)?;
            Ok((own, Some(shadow)))
        });
        let (schema, shadow_schema) = match schemas {
            Ok(schemas) => schemas,
            Err(message) => {
                remarks.findings.push(
                    Finding::about(format!("the generated schema is not accepted: {message}"))
                        .suggest("rename the property it names, or declare it as any JSON")
                        .tool_named(tool.name()),
                );
                return None;
            }
        };
        if remarks.findings.len() > before {
            return None;
        }
        let validated = shadow_schema.as_ref().unwrap_or(&schema);
        validate(&tool, validated, &members, self, remarks);
        let deciding = members.iter().filter(|policy| !policy.log_only).copied();
        let facts = self.settings.facts.iter().filter(|fact| {
            let mut read = reads.iter().flatten();
            read.any(|field| field.name == fact.name)
        });
        let digest = digest(&declared, self.settings, facts, Some(&tool), deciding);
        let height = members
            .iter()
            .map(|policy| policy.height)
            .max()
            .unwrap_or(0);
        let made = always(&tool, self.settings).and_then(|always| {
            let schemas = (&schema, shadow_schema.as_ref());
            let asked = asked(&tool, schemas, &own, reads, shadow_reads)?;
            Ok((always, hints(&tool)?, asked))
        });
        let (always, hints, asked) = match made {
            Ok(made) => made,
            Err(message) => {
                let finding = Finding::about(lower(&message)).tool_named(tool.name());
                remarks.findings.push(finding);
                return None;
            }
        };
        (remarks.findings.len() == before).then(|| Slice {
            schema,
            shadow_schema,
            always,
            hints,
            asked,
            digest,
            stack: STACK_BASE + height * STACK_PER_LEVEL,
            #[cfg(feature = "suite")]
            listener: None,
            tool,
        })
    }

    /// The facts that the policies of each question read.
    fn reads(&self, tool: &Tool, own: &Own<'_>, log_only: bool) -> Reads {
        let fields = session::fields(tool, self.settings);
        let [unattended, _, _] = own;
        let mut questions = Question::ALL.into_iter();
        own.each_ref().map(|policies| {
            // `T with approval` is a member of `T`, so `action in [T]` is validated for both.
            let of_approved = questions.next() == Some(Question::Approved);
            let also = unattended.iter().filter(|policy| {
                of_approved && matches!(policy.body.action, ActionConstraint::In(_))
            });
            let mentions = policies
                .iter()
                .chain(also)
                .filter(|policy| log_only || !policy.log_only)
                .map(|policy| policy.mentions.clone())
                .fold(Mentions::default(), Mentions::and);
            session::read_fields(&fields, &mentions)
        })
    }

    fn declare(&self, tool: &Tool, reads: &Reads) -> String {
        let types = reads
            .each_ref()
            .map(|read| session::session_type(read.iter()));
        let types = types.each_ref().map(Option::as_deref);
        let mut text = self.preamble.text.clone();
        tool.declare(types, &self.settings.extension, &mut text);
        text
    }

    /// The schema of one tool, with the actions of other tools that its policies mention as bare
    /// names: they apply to nothing here.
    fn schema(
        &self,
        declared: &str,
        tool: &Tool,
        members: &[&LoadedPolicy],
    ) -> Result<Schema, String> {
        let own: BTreeSet<String> = Question::ALL
            .into_iter()
            .map(|question| question.action(tool.name()))
            .collect();
        let mut text = declared.to_owned();
        let mentioned: BTreeSet<&String> = members.iter().flat_map(|p| &p.actions).collect();
        for action in mentioned {
            let of_tool = matches!(
                self.vocabulary.get(action),
                Some(crate::tool::Named::Tool(_))
            );
            if of_tool && !own.contains(action) {
                let _ = writeln!(text, "action {};", quoted(action));
            }
        }
        self.schemas.read(&self.preamble, text)
    }
}

fn asked(
    tool: &Tool,
    (schema, shadow_schema): (&Schema, Option<&Schema>),
    own: &Own<'_>,
    reads: Reads,
    shadow_reads: Reads,
) -> Result<[Asked; 3], String> {
    let ask = |question: Question, own: &[&LoadedPolicy], session, shadow_session| {
        let of = |log_only: bool| {
            let policies = own.iter().filter(|policy| log_only || !policy.log_only);
            Policies::new(policies.map(|policy| &policy.policy))
        };
        let shadows = own.iter().any(|policy| policy.log_only);
        let action = action_uid(&question.action(tool.name()))?;
        let shadow_context = shadow_schema.map(|schema| ContextType::of(schema, &action));
        Ok::<_, String>(Asked {
            context: ContextType::of(schema, &action)?,
            shadow_context: shadow_context.transpose()?,
            action,
            policies: of(false)?,
            with_shadow: if shadows { Some(of(true)?) } else { None },
            session,
            shadow_session,
        })
    };
    let [unattended, approved, approve] = Question::ALL;
    let [own1, own2, own3] = own;
    let ([s1, s2, s3], [w1, w2, w3]) = (reads, shadow_reads);
    Ok([
        ask(unattended, own1, s1, w1)?,
        ask(approved, own2, s2, w2)?,
        ask(approve, own3, s3, w3)?,
    ])
}

/// The policies that answer any question, sorted by id.
fn members<'a>(own: &Own<'a>) -> Vec<&'a LoadedPolicy> {
    let mut members: Vec<&LoadedPolicy> = own.iter().flatten().copied().collect();
    members.sort_by(|a, b| a.id().cmp(b.id()));
    members.dedup_by(|a, b| a.id() == b.id());
    members
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
///
/// With them the hypothetical approvers, who are members of nothing and whose names no person has.
fn always(tool: &Tool, settings: &Settings) -> Result<Entities, String> {
    let mut entities: Vec<Entity> = nobodies(settings)?.into_iter().map(Entity::named).collect();
    for question in Question::ALL {
        let groups: Result<Vec<_>, String> = tool
            .ancestors(question)
            .iter()
            .map(|group| action_uid(group))
            .collect();
        let action = action_uid(&question.action(tool.name()))?;
        entities.push(Entity::new(action, [], groups?, []));
    }
    with_entities(&Entities::empty(), entities, Hierarchy::Deep)
}

/// `context.tool`.
fn hints(tool: &Tool) -> Result<Value, String> {
    let of = &tool.declaration;
    Value::record([
        ("name", Value::text(&of.name)),
        ("read_only", Value::bool(of.read_only)),
        ("destructive", Value::bool(of.destructive)),
        ("idempotent", Value::bool(of.idempotent)),
    ])
}

fn action_uid(name: &str) -> Result<EntityUid, String> {
    let kind = type_name("Action")?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(name)))
}
