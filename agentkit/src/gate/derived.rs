//! What a tool derives from a call's arguments, as policies read it: `context.derived`.

use std::collections::{BTreeMap, BTreeSet};

use agentkit_policy::{AttributeType, AttributeValue};
use serde_json::Value;

use crate::{
    call::Canonical,
    tool::{Fact, ToolSpec},
};

/// The types of a tool's facts. One of a type that policies do not know is left out, so that a
/// policy that reads it does not load.
pub(crate) fn derived_types(spec: &ToolSpec) -> BTreeMap<String, AttributeType> {
    let known = |fact: &Fact| Some((fact.name().to_owned(), type_of(fact.schema())?));
    spec.facts.iter().filter_map(known).collect()
}

/// A tool's facts about these arguments. One that cannot be derived is left out, and the call is
/// denied for want of it.
pub(crate) fn derived_values(
    spec: &ToolSpec,
    arguments: &Canonical,
) -> BTreeMap<String, AttributeValue> {
    let mut values = BTreeMap::new();
    for fact in &spec.facts {
        let Some(kind) = type_of(fact.schema()) else {
            continue;
        };
        match fact.derive(&spec.name, arguments) {
            Ok(value) => {
                if let Some(value) = value_of(kind, &value) {
                    values.insert(fact.name().to_owned(), value);
                } else {
                    tracing::warn!(tool = spec.name, fact = fact.name(), "out of range");
                }
            }
            Err(error) => tracing::warn!(%error, "deriving a fact"),
        }
    }
    values
}

fn type_of(schema: &Value) -> Option<AttributeType> {
    let kind = |schema: &Value| match schema.get("type")?.as_str()? {
        "boolean" => Some(AttributeType::Bool),
        "integer" => Some(AttributeType::Long),
        "string"
            if schema
                .get("format")
                .is_some_and(|format| format == "date-time") =>
        {
            Some(AttributeType::Datetime)
        }
        "string" => Some(AttributeType::String),
        _ => None,
    };
    if schema.get("type")? != "array" {
        return kind(schema);
    }
    match kind(schema.get("items")?)? {
        AttributeType::String => Some(AttributeType::Strings),
        AttributeType::Long => Some(AttributeType::Longs),
        _ => None,
    }
}

/// The value; none where it is not of the type, as a number beyond 64 bits with a sign.
fn value_of(kind: AttributeType, value: &Value) -> Option<AttributeValue> {
    Some(match (kind, value) {
        (AttributeType::Bool, Value::Bool(value)) => AttributeValue::Bool(*value),
        (AttributeType::Long, Value::Number(number)) => AttributeValue::Long(number.as_i64()?),
        (AttributeType::String | AttributeType::Datetime, Value::String(text)) => {
            AttributeValue::String(text.clone())
        }
        (AttributeType::Strings, Value::Array(list)) => {
            let texts = list.iter().map(|item| item.as_str().map(str::to_owned));
            AttributeValue::Strings(texts.collect::<Option<BTreeSet<_>>>()?)
        }
        (AttributeType::Longs, Value::Array(list)) => {
            let numbers = list.iter().map(Value::as_i64);
            AttributeValue::Longs(numbers.collect::<Option<BTreeSet<_>>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use serde_json::json;

    use super::*;

    #[test]
    fn types_that_policies_know_and_values_of_them() {
        let integers = json!({"type": "array", "items": {"type": "integer"}});
        let texts = json!({"type": "array", "items": {"type": "string"}});
        for (schema, value, derived) in [
            (json!({"type": "boolean"}), json!(true), Some(true.into())),
            (json!({"type": "integer"}), json!(7), Some(7_i64.into())),
            (json!({"type": "integer"}), json!(u64::MAX), None),
            (json!({"type": "string"}), json!("x"), Some("x".into())),
            (json!({"type": "string"}), json!(7), None),
            (
                integers.clone(),
                json!([2, 1, 2]),
                Some(AttributeValue::Longs([1, 2].into())),
            ),
            (integers, json!([1.5]), None),
            (
                texts,
                json!(["b", "a"]),
                Some(AttributeValue::Strings(["a".into(), "b".into()].into())),
            ),
        ] {
            let kind = type_of(&schema).unwrap();
            assert_eq!(value_of(kind, &value), derived, "{schema} {value}");
        }
        for schema in [
            json!({"type": "object"}),
            json!({"type": "number"}),
            json!({"type": ["integer", "null"]}),
            json!({"type": "array", "items": {"type": "array"}}),
            json!(true),
        ] {
            assert_eq!(type_of(&schema), None, "{schema}");
        }
    }
}
