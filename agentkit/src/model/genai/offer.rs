//! Tools as a provider is told of them: the forms of a schema that providers take.

use std::collections::BTreeSet;

use ::genai::chat::Tool;
use serde_json::{Map, Value};

use crate::model::ToolOffer;

/// How tools are offered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfferForm {
    /// Nested types stand where they are used and not behind `$ref`.
    pub(super) inline: bool,
    /// Ask the provider to hold the model to the schema while it writes.
    pub(super) strict: bool,
}

impl OfferForm {
    pub(super) fn offer(self, tool: &ToolOffer) -> Tool {
        let mut schema = tool.input_schema.clone();
        if self.inline {
            schema = inlined(&schema);
        }
        let strict = self.strict.then(|| strict(&schema)).flatten();
        let is_strict = strict.is_some();
        let mut offered = Tool::new(tool.name.as_str())
            .with_description(tool.description.as_str())
            .with_schema(strict.unwrap_or(schema));
        if self.strict {
            offered.strict = Some(is_strict);
        }
        offered
    }
}

/// The schema with every definition in place of its `$ref`; a type that holds itself keeps its
/// definition.
fn inlined(schema: &Value) -> Value {
    let Some(definitions) = schema.get("$defs").and_then(Value::as_object) else {
        return schema.clone();
    };
    let mut root = schema.clone();
    if let Value::Object(map) = &mut root {
        map.remove("$defs");
    }
    let mut kept = BTreeSet::new();
    let mut root = expanded(&root, definitions, &mut Vec::new(), &mut kept);
    let mut left = Map::new();
    let mut queue: Vec<String> = kept.iter().cloned().collect();
    while let Some(name) = queue.pop() {
        if let (false, Some(definition)) = (left.contains_key(&name), definitions.get(&name)) {
            let mut more = BTreeSet::new();
            let definition = expanded(definition, definitions, &mut vec![name.clone()], &mut more);
            left.insert(name, definition);
            queue.extend(more);
        }
    }
    if let (Value::Object(map), false) = (&mut root, left.is_empty()) {
        map.insert("$defs".into(), Value::Object(left));
    }
    root
}

fn expanded(
    schema: &Value,
    definitions: &Map<String, Value>,
    inside: &mut Vec<String>,
    kept: &mut BTreeSet<String>,
) -> Value {
    match schema {
        Value::Array(items) => items
            .iter()
            .map(|item| expanded(item, definitions, inside, kept))
            .collect(),
        Value::Object(map) => {
            let name = map
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|reference| reference.strip_prefix("#/$defs/"));
            let beside: Map<String, Value> = map
                .iter()
                .filter(|(key, _)| name.is_none() || *key != "$ref")
                .map(|(key, value)| {
                    let literal = matches!(key.as_str(), "const" | "enum" | "default" | "examples");
                    let value = if literal {
                        value.clone()
                    } else {
                        expanded(value, definitions, inside, kept)
                    };
                    (key.clone(), value)
                })
                .collect();
            let Some((name, definition)) =
                name.and_then(|name| Some((name, definitions.get(name)?)))
            else {
                return Value::Object(beside);
            };
            if recursive(name, definitions) {
                kept.insert(name.to_owned());
                return schema.clone();
            }
            inside.push(name.to_owned());
            let inner = expanded(definition, definitions, inside, kept);
            inside.pop();
            merged(inner, beside)
        }
        other => other.clone(),
    }
}

/// Whether the definition leads back to itself.
fn recursive(name: &str, definitions: &Map<String, Value>) -> bool {
    let mut seen = BTreeSet::new();
    let mut queue: Vec<&Value> = definitions.get(name).into_iter().collect();
    while let Some(schema) = queue.pop() {
        match schema {
            Value::Array(items) => queue.extend(items),
            Value::Object(map) => {
                let reference = map
                    .get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|reference| reference.strip_prefix("#/$defs/"));
                if reference == Some(name) {
                    return true;
                }
                if let Some(other) = reference
                    && seen.insert(other)
                {
                    queue.extend(definitions.get(other));
                }
                queue.extend(map.values());
            }
            _ => {}
        }
    }
    false
}

/// What stands beside a `$ref` (a description, a default) belongs to the place and wins, except
/// that constraints add up.
fn merged(inner: Value, beside: Map<String, Value>) -> Value {
    let annotations = ["description", "default", "title", "examples", "deprecated"];
    let only_annotations = beside.keys().all(|key| annotations.contains(&key.as_str()));
    match inner {
        Value::Object(mut map) if only_annotations => {
            map.extend(beside);
            Value::Object(map)
        }
        inner if beside.is_empty() => inner,
        inner => {
            let mut map = beside;
            let mut all = match map.remove("allOf") {
                Some(Value::Array(all)) => all,
                _ => Vec::new(),
            };
            all.push(inner);
            map.insert("allOf".into(), Value::Array(all));
            Value::Object(map)
        }
    }
}

/// Formats that OpenAI holds a model to.
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// The schema in the dialect in which OpenAI constrains what a model writes, or nothing where the
/// dialect cannot say it. What it accepts is never more than the tool takes: there every property
/// is required, an optional one takes `null` if its type does.
fn strict(schema: &Value) -> Option<Value> {
    // The root is an object without alternatives.
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return None;
    }
    if ["anyOf", "oneOf"]
        .iter()
        .any(|keyword| schema.get(keyword).is_some())
    {
        return None;
    }
    strict_at(schema)
}

fn strict_at(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    let mut out = Map::new();
    for (keyword, value) in map {
        match keyword.as_str() {
            "type" | "description" | "enum" | "required" | "$ref" | "pattern" | "minimum"
            | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minItems"
            | "maxItems" => {
                out.insert(keyword.clone(), value.clone());
            }
            "const" => {
                out.insert("enum".into(), Value::Array(vec![value.clone()]));
            }
            "format" if FORMATS.iter().any(|format| value == format) => {
                out.insert(keyword.clone(), value.clone());
            }
            // Said to the model in another way, or checked when the arguments arrive.
            "format" | "title" | "default" | "examples" | "deprecated" | "$comment"
            | "minLength" | "maxLength" | "uniqueItems" => {}
            "items" => {
                out.insert(keyword.clone(), strict_at(value)?);
            }
            "anyOf" | "oneOf" => {
                let branches = value
                    .as_array()?
                    .iter()
                    .map(strict_at)
                    .collect::<Option<_>>()?;
                // Branches of both kinds would have to hold at once.
                if out.insert("anyOf".into(), Value::Array(branches)).is_some() {
                    return None;
                }
            }
            "properties" | "$defs" => {
                let inner = value
                    .as_object()?
                    .iter()
                    .map(|(name, schema)| Some((name.clone(), strict_at(schema)?)))
                    .collect::<Option<Map<_, _>>>()?;
                out.insert(keyword.clone(), Value::Object(inner));
            }
            "additionalProperties" | "unevaluatedProperties" if value == false => {}
            _ => return None,
        }
    }
    let is_object =
        out.get("type").is_some_and(|kind| kind == "object") || out.contains_key("properties");
    if is_object {
        let properties = out.get("properties").and_then(Value::as_object)?;
        // Beside alternatives an object cannot be closed.
        if out.contains_key("anyOf") {
            return None;
        }
        let names: BTreeSet<&String> = properties.keys().collect();
        let names = names.into_iter().cloned().map(Value::from).collect();
        out.insert("required".into(), Value::Array(names));
        out.insert("additionalProperties".into(), Value::Bool(false));
    }
    // What says nothing accepts everything.
    let says = ["type", "enum", "anyOf", "$ref"]
        .iter()
        .any(|keyword| out.contains_key(*keyword));
    says.then_some(Value::Object(out))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may")]
    use serde_json::json;

    use super::*;

    fn nested() -> Value {
        json!({
            "type": "object",
            "properties": {
                "from": {"$ref": "#/$defs/Address", "description": "Sender."},
                "to": {"$ref": "#/$defs/Address"},
                "tree": {"$ref": "#/$defs/Tree"},
                "word": {"const": "$ref", "default": {"$ref": "#/$defs/Address"}},
            },
            "required": ["from"],
            "additionalProperties": false,
            "$defs": {
                "Address": {
                    "type": "object",
                    "properties": {"city": {"$ref": "#/$defs/City"}},
                    "required": ["city"],
                    "additionalProperties": false,
                    "description": "Any address.",
                },
                "City": {"type": "string"},
                "Tree": {
                    "type": "object",
                    "properties": {
                        "at": {"$ref": "#/$defs/City"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                    },
                    "additionalProperties": false,
                },
            },
        })
    }

    #[test]
    fn nested_types_stand_where_they_are_used() {
        let schema = inlined(&nested());
        let properties = &schema["properties"];
        assert_eq!(
            properties["from"]["properties"]["city"],
            json!({"type": "string"})
        );
        assert_eq!(properties["from"]["description"], "Sender.");
        assert_eq!(properties["to"]["description"], "Any address.");
        assert_eq!(
            properties["word"]["default"],
            json!({"$ref": "#/$defs/Address"})
        );
    }

    #[test]
    fn a_type_that_holds_itself_keeps_its_definition_and_no_other_does() {
        let schema = inlined(&nested());
        assert_eq!(
            schema["properties"]["tree"],
            json!({"$ref": "#/$defs/Tree"})
        );
        let definitions = schema["$defs"].as_object().unwrap();
        assert_eq!(definitions.keys().collect::<Vec<_>>(), ["Tree"]);
        let tree = &definitions["Tree"]["properties"];
        assert_eq!(tree["at"], json!({"type": "string"}));
        assert_eq!(tree["children"]["items"], json!({"$ref": "#/$defs/Tree"}));
    }

    #[test]
    fn the_strict_dialect_accepts_no_more_than_the_tool() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "format": "uint8", "minimum": 0, "default": 3},
                "s": {"type": ["string", "null"], "minLength": 1},
                "e": {"oneOf": [{"const": "a", "description": "First."}, {"type": "string", "enum": ["b"]}]},
            },
            "required": ["e"],
            "additionalProperties": false,
        });
        let strict = strict(&schema).unwrap();
        assert_eq!(
            strict,
            json!({
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "minimum": 0},
                    "s": {"type": ["string", "null"]},
                    "e": {"anyOf": [
                        {"enum": ["a"], "description": "First."},
                        {"type": "string", "enum": ["b"]},
                    ]},
                },
                "required": ["e", "n", "s"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn what_the_strict_dialect_cannot_say_is_not_made_strict() {
        let property = |schema: Value| json!({"type": "object", "properties": {"p": schema}, "additionalProperties": false});
        assert!(strict(&property(json!({"type": "string"}))).is_some());
        for schema in [
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "array", "prefixItems": [{"type": "string"}]}),
            json!({"allOf": [{"type": "string"}]}),
            json!({"type": "object", "properties": {}, "anyOf": []}),
            json!({"description": "Anything."}),
            json!(true),
        ] {
            assert_eq!(strict(&property(schema.clone())), None, "{schema}");
        }
    }
}
