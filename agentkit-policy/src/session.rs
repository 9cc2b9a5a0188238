//! `context.session`: what is in it for each action, and the values that a host hands in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::attribute::{AttributeType, AttributeValue};
use crate::cedar::Value;
use crate::decision::Question;
use crate::declaration::Settings;
use crate::fact::{
    Distinct, FactDeclaration, FactKind, FactScope, FactWindow, SameArguments, ValuePath, keys,
};
use crate::load_error::Finding;
use crate::mention::Mentions;
use crate::set::PolicySet;
use crate::shape::quoted;
use crate::tool::{Tool, nearest};

/// What is always present: name, type, and whether it may be absent.
const ALWAYS: [(&str, AttributeType, bool); 16] = [
    ("id", AttributeType::String, false),
    ("agent", AttributeType::String, false),
    ("depth", AttributeType::Long, false),
    ("turn", AttributeType::Long, false),
    ("calls_since_user", AttributeType::Long, false),
    ("started_at", AttributeType::Datetime, false),
    ("labels", AttributeType::Strings, false),
    ("this.admitted", AttributeType::Long, false),
    ("this.in_flight", AttributeType::Long, false),
    ("this.ok", AttributeType::Long, false),
    ("this.failed", AttributeType::Long, false),
    ("this.denied", AttributeType::Long, false),
    ("this.declined", AttributeType::Long, false),
    ("this.same_args_admitted", AttributeType::Long, false),
    ("this.last_ok_at", AttributeType::Datetime, true),
    ("this.last_failed_at", AttributeType::Datetime, true),
];

fn always() -> impl Iterator<Item = SessionField> {
    ALWAYS
        .into_iter()
        .map(|(name, kind, optional)| SessionField {
            name: name.to_owned(),
            kind,
            optional,
        })
}

/// One fact as an action sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionField {
    /// As in `id` and `this.admitted`.
    pub(crate) name: String,
    pub(crate) kind: AttributeType,
    pub(crate) optional: bool,
}

/// The facts that policies about a tool may read.
pub(crate) fn fields(tool: &Tool, settings: &Settings) -> Vec<SessionField> {
    let declared = settings
        .facts
        .iter()
        .filter(|fact| comparable(fact, tool).is_ok())
        .map(|fact| SessionField {
            name: fact.name.clone(),
            kind: fact.kind.value_type(),
            optional: fact.kind.is_optional(),
        });
    always().chain(declared).collect()
}

/// Whether the calls that a fact looks at can be compared with one of this tool.
fn comparable(fact: &FactDeclaration, tool: &Tool) -> Result<(), String> {
    match &fact.same {
        SameArguments::Any => Ok(()),
        SameArguments::All if fact.tools.contains(tool.name()) => Ok(()),
        SameArguments::All => Err(format!(
            "the fact compares all arguments, and looks at calls of other tools than `{}`",
            tool.name()
        )),
        SameArguments::Paths(paths) => paths
            .iter()
            .find(|path| tool.input.under(&keys(path)).is_none())
            .map_or(Ok(()), |path| {
                Err(format!(
                    "the fact compares the argument `{path}`, which `{}` does not have",
                    tool.name()
                ))
            }),
    }
}

/// Why a policy cannot read a fact under this name about this tool, if it cannot.
pub(crate) fn unreadable(name: &str, tool: &Tool, settings: &Settings) -> Option<Finding> {
    let shown = format!("`context.session.{name}`");
    let whole = name == "this" || always().any(|field| field.name == name);
    let declared = settings.facts.iter().find(|fact| fact.name == name);
    if !whole && declared.is_none() {
        let known = always().map(|field| field.name);
        let known: Vec<String> = known
            .chain(settings.facts.iter().map(|fact| fact.name.clone()))
            .collect();
        let finding = Finding::about(format!("{shown} is not a declared fact"));
        return Some(match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => finding.suggest(format!("did you mean `context.session.{near}`?")),
            None => finding.suggest("declare it with `Settings::fact`"),
        });
    }
    if let Some(Err(why)) = declared.map(|fact| comparable(fact, tool)) {
        let finding = Finding::about(format!("{shown} cannot be read here: {why}"));
        return Some(finding.suggest("name the tools that have it, or declare another fact"));
    }
    if !whole || name != "this" {
        return (!settings.host_facts.holds(name)).then(|| not_handed_in(&shown));
    }
    let missing = always()
        .filter(|field| field.name.starts_with("this."))
        .find(|field| !settings.host_facts.holds(&field.name))?;
    Some(not_handed_in(&format!(
        "`context.session.{}`",
        missing.name
    )))
}

fn not_handed_in(shown: &str) -> Finding {
    Finding::about(format!("{shown} is not computed by this host")).suggest(
        "a rule that is never asked with its fact protects nothing: run it where the fact \
                  is computed, or take it out",
    )
}

/// The type of `context.session` in an action that reads these facts; none for none.
pub(crate) fn session_type<'a>(fields: impl Iterator<Item = &'a SessionField>) -> Option<String> {
    let mut own = String::new();
    let mut this = String::new();
    for field in fields {
        let (out, name) = match field.name.strip_prefix("this.") {
            Some(name) => (&mut this, name),
            None => (&mut own, field.name.as_str()),
        };
        if !out.is_empty() {
            out.push_str(", ");
        }
        let optional = if field.optional { "?" } else { "" };
        let _ = write!(out, "{}{optional}: {}", quoted(name), field.kind.cedar());
    }
    if !this.is_empty() {
        if !own.is_empty() {
            own.push_str(", ");
        }
        let _ = write!(own, "\"this\": {{{this}}}");
    }
    (!own.is_empty()).then(|| format!("{{{own}}}"))
}

/// What a host knows about the past of a session, by the names under which policies read it: `id`,
/// `this.admitted`, and declared names.
///
/// Nothing is filled in: a fact that the policies of a call read and that is not here denies the
/// call. Facts that no policy reads may be left out; [`PolicySet::session_facts`] lists those that
/// are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionFacts {
    values: BTreeMap<String, AttributeValue>,
}

impl SessionFacts {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is always present, as it is before the first call of a session: nothing was called,
    /// there are no labels. For tests and tools; a host says what it knows.
    pub fn fresh(id: impl Into<String>, agent: impl Into<String>, started_at: i64) -> Self {
        always()
            .filter(|field| !field.optional)
            .fold(Self::new(), |facts, field| {
                let value = match field.kind {
                    AttributeType::Strings => AttributeValue::Strings(<_>::default()),
                    AttributeType::Datetime => AttributeValue::time(started_at),
                    _ => AttributeValue::Long(0),
                };
                facts.set(field.name, value)
            })
            .set("id", id.into())
            .set("agent", agent.into())
            .set("turn", 1)
    }

    /// Sets a fact.
    pub fn set(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Self {
        self.insert(name, value);
        self
    }

    /// Sets a fact that is a point in time, in microseconds since the Unix epoch, UTC.
    pub fn set_time(self, name: impl Into<String>, micros: i64) -> Self {
        self.set(name, AttributeValue::time(micros))
    }

    /// Sets a fact.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<AttributeValue>) {
        self.values.insert(name.into(), value.into());
    }

    /// The value of a fact.
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.values.get(name)
    }

    /// All facts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttributeValue)> {
        self.values
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }
}

/// The session as an action sees it; none where its policies read nothing of it.
pub(crate) fn session_value(
    fields: &[SessionField],
    facts: Option<&SessionFacts>,
) -> Result<Option<Value>, String> {
    if fields.is_empty() {
        return Ok(None);
    }
    let mut own = Vec::with_capacity(fields.len());
    let mut this = Vec::new();
    let mut reads_this = false;
    for field in fields {
        let inner = field.name.strip_prefix("this.");
        reads_this |= inner.is_some();
        let value = match facts.and_then(|facts| facts.get(&field.name)) {
            Some(value) => field
                .kind
                .map(value)
                .map_err(|why| format!("fact `context.session.{}`: {why}", field.name))?,
            None if field.optional => continue,
            None => {
                return Err(format!(
                    "fact `context.session.{}`: policies read it and it was not handed in, so the \
                     call is denied; compute it before the decision",
                    field.name
                ));
            }
        };
        match inner {
            Some(name) => this.push((name, value)),
            None => own.push((field.name.as_str(), value)),
        }
    }
    if reads_this {
        own.push(("this", Value::record(this)?));
    }
    Value::record(own).map(Some)
}

/// A fact that policies read, so that it must be handed in with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFact<'a> {
    /// The name: `id`, `this.admitted`, or a declared one.
    pub name: &'a str,
    /// Its type.
    pub kind: AttributeType,
    /// Whether it may be left out: a time at which nothing happened yet.
    pub optional: bool,
    /// How it is declared; none for what is always present.
    pub declaration: Option<&'a FactDeclaration>,
}

impl PolicySet {
    /// The facts of `context.session` that policies read when these questions are put about a
    /// tool, each once. [`decide`](Self::decide) puts *unattended* and *approved*,
    /// [`may_approve`](Self::may_approve) puts *approve*, [`release`](Self::release) all three.
    /// Policies in `@mode("log_only")` count: what they read may be left out, and is worth having.
    pub fn session_facts(&self, tool: &str, questions: &[Question]) -> Vec<ReadFact<'_>> {
        let mut facts: Vec<ReadFact<'_>> = Vec::new();
        let Some(slice) = self.slices.get(tool) else {
            return facts;
        };
        for question in questions {
            let asked = slice.asked(*question);
            for field in asked.session.iter().chain(&asked.shadow_session) {
                if facts.iter().any(|known| known.name == field.name) {
                    continue;
                }
                let declared = &self.settings.facts;
                facts.push(ReadFact {
                    name: &field.name,
                    kind: field.kind,
                    optional: field.optional,
                    declaration: declared.iter().find(|fact| fact.name == field.name),
                });
            }
        }
        facts
    }
}

/// The fields that a question's policies read.
pub(crate) fn read_fields(fields: &[SessionField], mentions: &Mentions) -> Vec<SessionField> {
    fields
        .iter()
        .filter(|field| mentions.hold(&field.name))
        .cloned()
        .collect()
}

/// What is wrong with the declarations of facts.
pub(crate) fn check(settings: &Settings, tools: &[Tool]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, fact) in settings.facts.iter().enumerate() {
        let mut refuse = |message: String, remedy: &str| {
            findings
                .push(Finding::about(format!("fact `{}`: {message}", fact.name)).suggest(remedy));
        };
        let taken = always().any(|field| field.name == fact.name) || fact.name == "this";
        if taken {
            refuse(
                "the name is that of a fact that is always present".to_owned(),
                "rename it",
            );
        }
        let before = settings.facts.iter().take(index);
        if before.into_iter().any(|earlier| earlier.name == fact.name) {
            refuse("it is declared twice".to_owned(), "rename one of the two");
        }
        if fact.name.is_empty() || fact.name.chars().any(|c| c.is_control() || c == '.') {
            refuse(
                "the name is empty or holds a dot or a control character".to_owned(),
                "rename it",
            );
        }
        if fact.tools.is_empty() {
            refuse("it looks at no tool".to_owned(), "name at least one");
        }
        let bounded = matches!(fact.scope, FactScope::RunTree | FactScope::Session);
        match fact.window {
            FactWindow::Session if !bounded => refuse(
                "a principal or a tenant has no session that bounds the window".to_owned(),
                "give the window a duration",
            ),
            FactWindow::Last(duration) if duration.is_zero() => {
                refuse("the window is empty".to_owned(), "give it a duration");
            }
            _ => {}
        }
        if let FactKind::ValuesOk { of, .. } = fact.kind
            && !matches!(of, AttributeType::String | AttributeType::Long)
        {
            refuse(
                format!("values of type {} cannot be collected", of.cedar()),
                "use `string` or `long`",
            );
        }
        let uses = match &fact.kind {
            FactKind::Unspent { uses } if uses.is_empty() => {
                refuse("no tool uses its grants".to_owned(), "name at least one");
                Some(uses)
            }
            FactKind::Unspent { uses } => Some(uses),
            _ => None,
        };
        for name in fact.tools.iter().chain(uses.into_iter().flatten()) {
            let Some(tool) = tools.iter().find(|tool| tool.name() == name) else {
                refuse(
                    format!("the tool `{name}` is not declared"),
                    "declare it, or correct the name",
                );
                continue;
            };
            if let Err((message, remedy)) = check_paths(fact, tool) {
                refuse(message, remedy);
            }
        }
    }
    findings
}

/// The arguments that a fact names must be there in the tools that it looks at.
fn check_paths(fact: &FactDeclaration, tool: &Tool) -> Result<(), (String, &'static str)> {
    let lacks = |path: &str| {
        (
            format!("`{}` has no argument `{path}`", tool.name()),
            "correct the path; keys are joined by dots",
        )
    };
    if let SameArguments::Paths(paths) = &fact.same
        && let Some(path) = paths
            .iter()
            .find(|path| tool.input.under(&keys(path)).is_none())
    {
        return Err(lacks(path));
    }
    if !fact.tools.contains(tool.name()) {
        return Ok(());
    }
    let (path, sums) = match &fact.kind {
        FactKind::SumAdmitted { path } | FactKind::SumOk { path } => (path, true),
        FactKind::ValuesOk { path, .. }
        | FactKind::DistinctOk {
            of: Distinct::Values(path),
        } => (path, false),
        _ => return Ok(()),
    };
    match path {
        ValuePath::Input(path) => match tool.input.under(&keys(path)) {
            None => Err(lacks(path)),
            Some(shape) if sums && !shape.is_integer() => Err((
                format!("argument `{path}` of `{}` is not an integer", tool.name()),
                "sums are over integers, such as cents",
            )),
            Some(_) => Ok(()),
        },
        ValuePath::Output(_) if matches!(fact.kind, FactKind::SumAdmitted { .. }) => Err((
            "an output does not exist yet when a call is admitted".to_owned(),
            "add up an argument, or use `sum_ok`",
        )),
        ValuePath::Output(_) => Ok(()),
    }
}
