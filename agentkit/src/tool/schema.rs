//! JSON Schemas of tools.
//!
//! `schemars` leaves objects open, as serde does. Arguments are decoded strictly, so the schema
//! that a model sees says so: every object that lists its properties is closed.

use std::collections::BTreeSet;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

/// Keywords whose subschemas apply to the same value as the schema that holds them.
const IN_PLACE: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "$ref",
];

/// Keywords whose subschemas apply to parts of the value.
const PARTS: [&str; 8] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
];

/// What a stranger may send for a `T`.
pub(super) fn accepted<T: JsonSchema + ?Sized>() -> Value {
    finish::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// What a model may answer where a `T` is wanted.
pub(crate) fn answer_schema<T: JsonSchema + ?Sized>() -> Value {
    for_models(accepted::<T>())
}

/// What a `T` looks like once it is serialised.
pub(super) fn produced<T: JsonSchema + ?Sized>() -> Value {
    finish::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn finish<T: JsonSchema + ?Sized>(settings: SchemaSettings) -> Value {
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Value::Object(root) = &mut schema {
        root.remove("$schema");
    }
    close(&mut schema);
    schema
}

/// Prepares a schema of arguments: title and text of the struct are the macro's, not the author's.
pub(super) fn arguments(mut schema: Value) -> Value {
    if let Value::Object(root) = &mut schema {
        root.remove("title");
        root.remove("description");
        root.entry("type").or_insert_with(|| "object".into());
        root.entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    close(&mut schema);
    schema
}

/// Takes out what no model needs and some providers refuse: titles, which are the names of Rust
/// types, and the formats in which schemars writes the width of a number.
pub(super) fn for_models(mut schema: Value) -> Value {
    simplify(&mut schema);
    schema
}

fn simplify(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.remove("title");
    let numeric = |format: &str| {
        ["int", "uint", "float", "double"].contains(&format.trim_end_matches(char::is_numeric))
    };
    if map
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(numeric)
    {
        map.remove("format");
    }
    for (keyword, value) in map.iter_mut() {
        if matches!(keyword.as_str(), "$defs" | "definitions") {
            if let Value::Object(definitions) = value {
                definitions.values_mut().for_each(simplify);
            }
        } else if IN_PLACE.contains(&&**keyword) || PARTS.contains(&&**keyword) {
            subschemas_mut(keyword, value, &mut simplify);
        }
    }
}

/// Closes every object that lists its properties and does not say what else it takes.
pub(super) fn close(schema: &mut Value) {
    let open = open_definitions(schema);
    close_at(schema, false);
    for keyword in ["$defs", "definitions"] {
        let Some(Value::Object(definitions)) = schema.get_mut(keyword) else {
            continue;
        };
        for (name, definition) in definitions {
            close_at(definition, open.contains(name));
        }
    }
}

/// `open` is whether another schema adds properties to the same object. Such a schema cannot be
/// closed itself, since it does not know them; the one that adds is closed instead.
fn close_at(schema: &mut Value, open: bool) {
    let Value::Object(map) = schema else { return };
    let shares = shares_object(map);
    for (keyword, value) in map.iter_mut() {
        if IN_PLACE.contains(&&**keyword) {
            subschemas_mut(keyword, value, &mut |sub| close_at(sub, open || shares));
        } else if PARTS.contains(&&**keyword) {
            subschemas_mut(keyword, value, &mut |sub| close_at(sub, false));
        }
    }
    let says = ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .any(|keyword| map.contains_key(*keyword));
    if open || says {
        return;
    }
    if shares {
        map.insert("unevaluatedProperties".into(), Value::Bool(false));
    } else if map.contains_key("properties") {
        map.insert("additionalProperties".into(), Value::Bool(false));
    }
}

/// Whether the properties of the object are listed in more than one place.
fn shares_object(map: &Map<String, Value>) -> bool {
    let places = IN_PLACE
        .iter()
        .filter(|keyword| map.contains_key(**keyword))
        .count();
    let merged = map
        .get("allOf")
        .and_then(Value::as_array)
        .is_some_and(|all| all.len() > 1);
    merged || places + usize::from(map.contains_key("properties")) > 1
}

/// Definitions that some schema adds properties to.
fn open_definitions(root: &Value) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    loop {
        let before = open.len();
        gather(root, false, &mut open);
        for keyword in ["$defs", "definitions"] {
            for (name, definition) in root
                .get(keyword)
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                let is_open = open.contains(name);
                gather(definition, is_open, &mut open);
            }
        }
        if open.len() == before {
            return open;
        }
    }
}

fn gather(schema: &Value, open: bool, found: &mut BTreeSet<String>) {
    let Value::Object(map) = schema else { return };
    let shares = open || shares_object(map);
    for (keyword, value) in map {
        if keyword == "$ref" {
            if shares && let Some(name) = value.as_str().and_then(definition_name) {
                found.insert(name.to_owned());
            }
        } else if IN_PLACE.contains(&&**keyword) {
            subschemas(keyword, value, &mut |sub| gather(sub, shares, found));
        } else if PARTS.contains(&&**keyword) {
            subschemas(keyword, value, &mut |sub| gather(sub, false, found));
        }
    }
}

fn definition_name(reference: &str) -> Option<&str> {
    reference
        .strip_prefix("#/$defs/")
        .or_else(|| reference.strip_prefix("#/definitions/"))
}

/// Keywords that hold a map from names to schemas.
fn holds_map(keyword: &str) -> bool {
    matches!(
        keyword,
        "properties" | "patternProperties" | "dependentSchemas"
    )
}

fn subschemas(keyword: &str, value: &Value, each: &mut dyn FnMut(&Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(each),
        Value::Object(map) if holds_map(keyword) => map.values().for_each(each),
        other => each(other),
    }
}

fn subschemas_mut(keyword: &str, value: &mut Value, each: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(each),
        Value::Object(map) if holds_map(keyword) => map.values_mut().for_each(each),
        other => each(other),
    }
}

/// The names of the properties that the schema lists for the root object, in its order.
pub(super) fn property_names(schema: &Value) -> Vec<&str> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default()
}
