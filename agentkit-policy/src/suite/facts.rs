//! What policies read besides the arguments: the past of the session, derived facts, and the
//! application's entities.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::attribute::{AttributeType, AttributeValue};
use crate::declaration::Settings;
use crate::provider::{FieldValue, Provided, ProvidedEntity};
use crate::session::SessionFacts;
use crate::tool::nearest;

use super::document::{Fields, Kind, Node, Reader};
use super::time::instant;

/// Reads a part of the file as serde knows it.
pub(crate) fn typed<T: DeserializeOwned>(
    reader: &mut Reader<'_>,
    field: &str,
    node: &Node,
) -> Option<T> {
    match serde_json::from_value(node.to_json()) {
        Ok(value) => Some(value),
        Err(error) => {
            reader.complain(
                node.at,
                format!("`{field}`: {error}"),
                "write it as `Settings` and its parts are written in JSON",
            );
            None
        }
    }
}

/// A value of a set of values, text or number, as a fact or an attribute.
pub(crate) fn value(reader: &mut Reader<'_>, name: &str, node: &Node) -> Option<AttributeValue> {
    let read = match &node.kind {
        Kind::Bool(value) => Some(AttributeValue::Bool(*value)),
        Kind::Number(value) => value.as_i64().map(AttributeValue::Long),
        Kind::Text(value) => Some(AttributeValue::String(value.clone())),
        Kind::List(items) => match items.first().map(|item| &item.kind) {
            Some(Kind::Number(_)) => typed(reader, name, node).map(AttributeValue::Longs),
            _ => Some(AttributeValue::Strings(
                reader
                    .texts(name, node)
                    .into_iter()
                    .map(|(_, text)| text)
                    .collect(),
            )),
        },
        Kind::Null | Kind::Map(_) => None,
    };
    if read.is_none() {
        reader.complain(
            node.at,
            format!("`{name}` is {}", node.shown()),
            "write true or false, a whole number, a text, or a list of texts or numbers",
        );
    }
    read
}

/// Values by their names.
pub(crate) fn values(
    reader: &mut Reader<'_>,
    field: &str,
    node: &Node,
) -> BTreeMap<String, AttributeValue> {
    let Kind::Map(entries) = &node.kind else {
        reader.complain(
            node.at,
            format!("`{field}` is {}, not a map", node.shown()),
            "write `{name: value}`",
        );
        return BTreeMap::new();
    };
    entries
        .iter()
        .filter_map(|(key, node)| Some((key.name.clone(), value(reader, &key.name, node)?)))
        .collect()
}

/// Every fact as it is before anything has happened; those that may be absent are.
pub(crate) fn untouched(settings: &Settings, run: &str, agent: &str, now: i64) -> SessionFacts {
    let mut facts = SessionFacts::fresh(run, agent, now);
    for fact in settings
        .facts
        .iter()
        .filter(|fact| !fact.kind.is_optional())
    {
        facts.insert(
            &fact.name,
            match fact.kind.value_type() {
                AttributeType::Bool => AttributeValue::Bool(false),
                AttributeType::Strings | AttributeType::Longs => {
                    AttributeValue::Strings(<_>::default())
                }
                _ => AttributeValue::Long(0),
            },
        );
    }
    facts
}

/// The past as a case knows it: nothing has happened yet but for what is written.
pub(crate) fn session(
    reader: &mut Reader<'_>,
    written: [Option<&Node>; 2],
    settings: &Settings,
    (run, agent, now): (&str, &str, i64),
) -> SessionFacts {
    let mut facts = untouched(settings, run, agent, now);
    for node in written.into_iter().flatten() {
        overlay(reader, "", node, settings, now, &mut facts);
    }
    facts
}

const MOMENTS: [&str; 3] = ["started_at", "this.last_ok_at", "this.last_failed_at"];

fn overlay(
    reader: &mut Reader<'_>,
    prefix: &str,
    node: &Node,
    settings: &Settings,
    now: i64,
    facts: &mut SessionFacts,
) {
    let Kind::Map(entries) = &node.kind else {
        reader.complain(
            node.at,
            format!("`session` is {}, not a map", node.shown()),
            "write `session: {labels: [secret], this: {admitted: 2}}`",
        );
        return;
    };
    for (key, node) in entries {
        let name = format!("{prefix}{}", key.name);
        if name == "this" {
            overlay(reader, "this.", node, settings, now, facts);
            continue;
        }
        let declared = settings.facts.iter().find(|fact| fact.name == name);
        let kind = declared.map(|fact| fact.kind.value_type());
        if kind.is_none() && !MOMENTS.contains(&name.as_str()) && facts.get(&name).is_none() {
            let known = facts.iter().map(|(name, _)| name);
            let declared = settings.facts.iter().map(|fact| fact.name.as_str());
            let near = nearest(&name, known.chain(declared).chain(MOMENTS));
            reader.complain(
                key.at,
                format!("`{name}` is not a fact of the session"),
                near.map_or_else(
                    || "declare it under `settings: {facts: […]}`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                ),
            );
            continue;
        }
        if kind == Some(AttributeType::Datetime) || MOMENTS.contains(&name.as_str()) {
            match node.as_text().and_then(|text| instant(text, now)) {
                Some(micros) => facts.insert(name, AttributeValue::time(micros)),
                None => reader.complain(
                    node.at,
                    format!("`{name}` is {}, not a moment", node.shown()),
                    "write `2026-03-01T12:00:00Z`, or `5m ago`",
                ),
            }
        } else if let Some(value) = value(reader, &name, node) {
            facts.insert(name, value);
        }
    }
}

/// What the application's provider would say.
pub(crate) fn provided(reader: &mut Reader<'_>, fields: Fields<'_>) -> Option<Provided> {
    let entities = fields.get("entities");
    let app = fields.get("app");
    if entities.is_none() && app.is_none() {
        return None;
    }
    let mut provided = Provided::new();
    if let Some(node) = entities {
        let all: Option<Vec<ProvidedEntity>> = typed(reader, "entities", node);
        for entity in all.into_iter().flatten() {
            provided = provided.entity(entity);
        }
    }
    if let Some(node) = app {
        let all: Option<BTreeMap<String, FieldValue>> = typed(reader, "app", node);
        for (name, value) in all.into_iter().flatten() {
            provided = provided.fact(name, value);
        }
    }
    Some(provided)
}
