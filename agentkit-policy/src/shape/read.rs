//! From a JSON Schema to a shape.
//!
//! What only narrows the values (`minLength`, `pattern`, `not`, …) is not looked at: it hides
//! nothing. What could hide an argument from the policies is refused, with the property's path.

mod alternatives;
mod merge;

use serde_json::{Map, Value};

use super::scalar;
use super::{EnumShape, Field, MapShape, Names, RecordShape, Shape};

/// Schemas nested deeper than this are refused.
const MAX_DEPTH: usize = 32;
/// Schemas that expand to more nodes than this are refused.
const MAX_NODES: usize = 20_000;
/// Keys by which Cedar's JSON marks entities and extension values.
const RESERVED_KEYS: [&str; 3] = ["__entity", "__extn", "__expr"];
/// Keywords that say what a value is, as opposed to describing or narrowing it.
const STRUCTURE: [&str; 11] = [
    "type",
    "properties",
    "enum",
    "const",
    "oneOf",
    "anyOf",
    "allOf",
    "items",
    "prefixItems",
    "additionalProperties",
    "patternProperties",
];
/// Keywords whose meaning depends on other parts of the value or of the schema.
const BEYOND: [(&str, &str); 6] = [
    ("$dynamicRef", "use `$ref`"),
    ("$recursiveRef", "use `$ref`"),
    ("if", "use `oneOf` with one object for each case"),
    ("dependentSchemas", "list the properties under `properties`"),
    ("dependencies", "list the properties under `properties`"),
    ("unevaluatedItems", "use `items`"),
];

/// Why a schema cannot be mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadError {
    /// Path of the property.
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

/// Reads the schema of a tool's arguments. The result is always shown as a record.
pub(crate) fn input_shape(
    tool: &str,
    schema: &Value,
    names: &mut Names,
) -> Result<Shape, ReadError> {
    let mut reader = Reader {
        root: schema,
        tool,
        names,
        references: Vec::new(),
        path: Vec::new(),
        depth: 0,
        nodes: 0,
    };
    match reader.read(schema)?.shape {
        shape @ (Shape::Record(_) | Shape::Tagged(_) | Shape::Untagged(_)) => Ok(shape),
        // `{"type": "object"}` at the root is how a tool without arguments is written.
        Shape::Map(map) => Ok(Shape::Record(RecordShape {
            fields: Vec::new(),
            rest: open_object(schema).then(|| (REST.to_owned(), map)),
        })),
        Shape::Opaque => Ok(Shape::Record(RecordShape {
            fields: Vec::new(),
            rest: Some((
                REST.to_owned(),
                Box::new(MapShape {
                    entity: reader.names.claim(tool, "arguments"),
                    value: Shape::Opaque,
                }),
            )),
        })),
        _ => Err(reader.fail(
            "the arguments are not an object",
            "wrap them in an object with one property for each argument",
        )),
    }
}

/// Attribute under which keys appear that are not declared but allowed.
const REST: &str = "*";

fn open_object(schema: &Value) -> bool {
    schema
        .get("additionalProperties")
        .is_some_and(|v| *v != Value::Bool(false))
        || schema.get("patternProperties").is_some()
}

struct Read {
    shape: Shape,
    nullable: bool,
}

impl From<Shape> for Read {
    fn from(shape: Shape) -> Self {
        Self {
            shape,
            nullable: false,
        }
    }
}

struct Reader<'a> {
    root: &'a Value,
    tool: &'a str,
    names: &'a mut Names,
    /// The references that lead to where the reader is.
    references: Vec<String>,
    path: Vec<String>,
    depth: usize,
    nodes: usize,
}

type Object = Map<String, Value>;

impl Reader<'_> {
    fn fail(&self, message: impl Into<String>, remedy: impl Into<String>) -> ReadError {
        ReadError {
            path: self.path(),
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for part in &self.path {
            if !path.is_empty() && part != "[]" {
                path.push('.');
            }
            path.push_str(part);
        }
        path
    }

    fn at<T>(
        &mut self,
        part: &str,
        step: impl FnOnce(&mut Self) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        self.path.push(part.to_owned());
        let result = step(self);
        self.path.pop();
        result
    }

    fn claim(&mut self, fallback: &str) -> String {
        let path = self.path();
        let path = if path.is_empty() { fallback } else { &path };
        self.names.claim(self.tool, path)
    }

    fn read(&mut self, schema: &Value) -> Result<Read, ReadError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || self.depth >= MAX_DEPTH {
            return Err(self.fail(
                format!("the schema is nested deeper than {MAX_DEPTH} or larger than {MAX_NODES}"),
                "flatten it, or declare the property as any JSON (`true`)",
            ));
        }
        self.depth += 1;
        let references = self.references.len();
        let result = match schema {
            Value::Bool(_) => Ok(any_json()),
            Value::Object(object) => self.read_object(object),
            other => Err(self.fail(
                format!("`{other}` is not a JSON Schema"),
                "use an object, `true` or `false`",
            )),
        };
        self.references.truncate(references);
        self.depth -= 1;
        result
    }

    fn read_object(&mut self, schema: &Object) -> Result<Read, ReadError> {
        self.refuse_beyond(schema)?;
        if let Some(reference) = schema.get("$ref") {
            return self.reference(schema, reference);
        }
        if let Some(parts) = schema.get("allOf") {
            let parts = self.list_of(parts, "allOf")?;
            return match self.merge(schema, &parts)? {
                Some(merged) => self.read_object(&merged),
                None => Ok(any_json()),
            };
        }
        if let Some(only) = schema.get("const") {
            return self.values(std::slice::from_ref(only));
        }
        if let Some(values) = schema.get("enum") {
            let values = self.list_of(values, "enum")?;
            return self.values(&values);
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(branches) = schema.get(keyword) {
                let branches = self.list_of(branches, keyword)?;
                return self.alternatives(schema, keyword, &branches);
            }
        }
        match schema.get("type") {
            Some(Value::String(kind)) => self.typed(kind, schema),
            Some(Value::Array(kinds)) => self.several_types(kinds, schema),
            Some(other) => Err(self.fail(
                format!("`{other}` is not a type"),
                "use one of the type names of JSON Schema",
            )),
            None => match implied_type(schema) {
                Some(kind) => self.typed(kind, schema),
                None => Ok(any_json()),
            },
        }
    }

    fn refuse_beyond(&self, schema: &Object) -> Result<(), ReadError> {
        for (keyword, remedy) in BEYOND {
            if schema.contains_key(keyword) {
                return Err(self.fail(
                    format!("the keyword `{keyword}` can hide arguments from policies"),
                    remedy,
                ));
            }
        }
        Ok(())
    }

    fn list_of(&self, value: &Value, keyword: &str) -> Result<Vec<Value>, ReadError> {
        value
            .as_array()
            .filter(|list| !list.is_empty())
            .cloned()
            .ok_or_else(|| {
                self.fail(
                    format!("`{keyword}` holds no alternatives"),
                    "list at least one",
                )
            })
    }

    fn lookup(&self, reference: &Value) -> Result<(String, Value), ReadError> {
        let text = reference.as_str().unwrap_or_default();
        let pointer = text.strip_prefix('#').map(|pointer| {
            // Percent-encoding does not occur in what schemars and the MCP SDKs write.
            self.root.pointer(pointer)
        });
        match pointer {
            Some(Some(target)) => Ok((text.to_owned(), target.clone())),
            Some(None) => Err(self.fail(
                format!("the reference `{text}` leads nowhere"),
                "add the definition to `$defs`",
            )),
            None => Err(self.fail(
                format!("the reference {reference} leads out of the schema"),
                "copy the definition into `$defs`",
            )),
        }
    }

    fn reference(&mut self, schema: &Object, reference: &Value) -> Result<Read, ReadError> {
        let (name, target) = self.lookup(reference)?;
        if self.references.contains(&name) {
            // Cedar has no recursive types.
            return Ok(any_json());
        }
        self.references.push(name);
        let beside = STRUCTURE
            .iter()
            .any(|keyword| schema.contains_key(*keyword));
        if !beside {
            return self.read(&target);
        }
        let mut rest = schema.clone();
        rest.remove("$ref");
        let mut parts = vec![target];
        if let Some(Value::Array(more)) = rest.remove("allOf") {
            parts.extend(more);
        }
        match self.merge(&rest, &parts)? {
            Some(merged) => self.read_object(&merged),
            None => Ok(any_json()),
        }
    }

    /// A closed list of values.
    fn values(&mut self, values: &[Value]) -> Result<Read, ReadError> {
        let nullable = values.iter().any(Value::is_null);
        let values: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
        let all = |test: fn(&Value) -> bool| values.iter().all(|value| test(value));
        let shape = if values.is_empty() {
            Shape::Opaque
        } else if all(Value::is_string) {
            let mut texts: Vec<String> = Vec::new();
            for text in values.iter().filter_map(|value| value.as_str()) {
                if !texts.iter().any(|known| known == text) {
                    texts.push(text.to_owned());
                }
            }
            Shape::Enum(EnumShape {
                entity: self.claim("value"),
                values: texts,
            })
        } else if all(Value::is_boolean) {
            self.scalar("boolean", None)?
        } else if all(|value| value.is_i64() || value.is_u64()) {
            self.scalar("integer", None)?
        } else if all(Value::is_number) {
            self.scalar("number", None)?
        } else {
            let mut groups: Vec<(&str, Vec<Value>)> = Vec::new();
            for value in values {
                let kind = kind_of(value);
                match groups.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, group)) => group.push(value.clone()),
                    None => groups.push((kind, vec![value.clone()])),
                }
            }
            if let [(_, _)] = groups.as_slice() {
                // Only objects or only arrays: constants without a Cedar form of their own.
                Shape::Opaque
            } else {
                let mut alternatives = Vec::new();
                for (kind, group) in groups {
                    let read = self.at(kind, |reader| reader.values(&group))?;
                    alternatives.push((kind.to_owned(), read.shape));
                }
                Shape::Untagged(alternatives)
            }
        };
        Ok(Read { shape, nullable })
    }

    fn scalar(&self, kind: &str, format: Option<&str>) -> Result<Shape, ReadError> {
        scalar::find(kind, format)
            .map(Shape::Scalar)
            .ok_or_else(|| {
                self.fail(
                format!("`{kind}` is not a type of JSON Schema"),
                "use one of `boolean`, `integer`, `number`, `string`, `array`, `object`, `null`",
            )
            })
    }

    fn typed(&mut self, kind: &str, schema: &Object) -> Result<Read, ReadError> {
        match kind {
            "object" => Ok(self.object(schema)?.into()),
            "array" => Ok(self.array(schema)?.into()),
            "null" => Ok(any_json()),
            kind => {
                let format = schema.get("format").and_then(Value::as_str);
                Ok(self.scalar(kind, format)?.into())
            }
        }
    }

    fn several_types(&mut self, kinds: &[Value], schema: &Object) -> Result<Read, ReadError> {
        let nullable = kinds.iter().any(|kind| kind == "null");
        let kinds: Vec<&str> = kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect();
        let shape = match kinds.as_slice() {
            [] => Shape::Opaque,
            [kind] => self.typed(kind, schema)?.shape,
            several => {
                let mut alternatives = Vec::new();
                for kind in several {
                    let name = short_name(kind);
                    let read = self.at(name, |reader| reader.typed(kind, schema))?;
                    alternatives.push((name.to_owned(), read.shape));
                }
                Shape::Untagged(alternatives)
            }
        };
        Ok(Read { shape, nullable })
    }

    /// A shape for a place that cannot be left out: null must have a form of its own there.
    fn read_in_place(&mut self, schema: &Value) -> Result<Shape, ReadError> {
        let read = self.read(schema)?;
        Ok(match read {
            Read {
                shape: Shape::Opaque,
                ..
            } => Shape::Opaque,
            Read {
                shape,
                nullable: true,
            } => Shape::Maybe(Box::new(shape)),
            Read { shape, .. } => shape,
        })
    }

    fn array(&mut self, schema: &Object) -> Result<Shape, ReadError> {
        // `items` as a list is how tuples were written before 2020-12.
        let old_tuple = schema.get("items").filter(|items| items.is_array());
        let Some(positions) = schema.get("prefixItems").or(old_tuple) else {
            let any = Value::Bool(true);
            let items = schema.get("items").unwrap_or(&any);
            let item = self.at("[]", |reader| reader.read_in_place(items))?;
            return Ok(Shape::List(Box::new(item)));
        };
        let positions = self.list_of(positions, "prefixItems")?;
        let least = schema
            .get("minItems")
            .and_then(Value::as_u64)
            .and_then(|least| usize::try_from(least).ok())
            .unwrap_or(0);
        let mut items = Vec::with_capacity(positions.len());
        for (index, position) in positions.iter().enumerate() {
            let read = self.at(&index.to_string(), |reader| reader.read(position))?;
            items.push((read.shape, index < least && !read.nullable));
        }
        Ok(Shape::Tuple(items))
    }

    fn object(&mut self, schema: &Object) -> Result<Shape, ReadError> {
        let no_properties = Map::new();
        let properties = match schema.get("properties") {
            Some(Value::Object(properties)) => Some(properties),
            None => None,
            Some(other) => {
                return Err(self.fail(
                    format!("`properties` is `{other}`"),
                    "use an object of schemas",
                ));
            }
        };
        let values = self.free_values(schema)?;
        if properties.is_none() && values.is_some() || properties.is_none() && !is_closed(schema) {
            let map = self.map(values.as_ref())?;
            return Ok(Shape::Map(Box::new(map)));
        }
        let properties = properties.unwrap_or(&no_properties);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut fields = Vec::with_capacity(properties.len());
        for (key, property) in properties {
            let required = required.contains(&key.as_str());
            fields.push(self.at(key, |reader| reader.property(key, property, required))?);
        }
        name_counts(&mut fields, properties);
        let rest = match values {
            Some(values) if properties.contains_key(REST) => {
                return Err(self.fail(
                    format!("a property named `{REST}` beside free keys ({values})"),
                    "set `additionalProperties` to false or rename the property",
                ));
            }
            Some(values) => {
                let map = self.at(REST, |reader| reader.map(Some(&values)))?;
                Some((REST.to_owned(), Box::new(map)))
            }
            None => None,
        };
        Ok(Shape::Record(RecordShape { fields, rest }))
    }

    fn property(&mut self, key: &str, schema: &Value, required: bool) -> Result<Field, ReadError> {
        if RESERVED_KEYS.contains(&key) {
            return Err(self.fail(
                "the name is reserved by Cedar's JSON format",
                "rename the property",
            ));
        }
        let read = self.read(schema)?;
        let count = matches!(read.shape, Shape::List(_)).then(String::new);
        Ok(Field {
            key: key.to_owned(),
            required: required && !read.nullable && *schema != Value::Bool(false),
            shape: read.shape,
            count,
        })
    }

    /// The schema of values under keys that are not declared, where such keys are allowed.
    fn free_values(&self, schema: &Object) -> Result<Option<Value>, ReadError> {
        let additional = schema
            .get("additionalProperties")
            .or_else(|| schema.get("unevaluatedProperties"))
            .filter(|values| **values != Value::Bool(false));
        let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) else {
            return Ok(additional.cloned());
        };
        let mut values = patterns.values().chain(additional);
        match (values.next(), values.next()) {
            (only, None) => Ok(only.cloned()),
            // Several kinds of values: each is seen as any JSON.
            _ if !patterns.is_empty() => Ok(Some(Value::Bool(true))),
            _ => Err(self.fail("`patternProperties` is empty", "leave it out")),
        }
    }

    fn map(&mut self, values: Option<&Value>) -> Result<MapShape, ReadError> {
        let value = match values {
            Some(values) => self.at("{}", |reader| reader.read(values))?.shape,
            None => Shape::Opaque,
        };
        Ok(MapShape {
            entity: self.claim("map"),
            value,
        })
    }
}

/// Null is among any JSON; the attribute `present` tells.
fn any_json() -> Read {
    Shape::Opaque.into()
}

fn is_closed(schema: &Object) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

fn implied_type(schema: &Object) -> Option<&'static str> {
    let has = |keyword: &&str| schema.contains_key(*keyword);
    if [
        "properties",
        "additionalProperties",
        "patternProperties",
        "required",
    ]
    .iter()
    .any(has)
    {
        Some("object")
    } else if ["items", "prefixItems"].iter().any(has) {
        Some("array")
    } else {
        None
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "num",
        Value::String(_) => "str",
        Value::Array(_) => "arr",
        Value::Object(_) => "obj",
    }
}

fn short_name(kind: &str) -> &'static str {
    match kind {
        "string" => "str",
        "integer" => "int",
        "number" => "num",
        "boolean" => "bool",
        "array" => "arr",
        "object" => "obj",
        _ => "any",
    }
}

/// A name that is not taken yet: the wished one, or the wished one with a number.
fn free_name(wish: &str, taken: &mut Vec<String>) -> String {
    let mut name = wish.to_owned();
    let mut number = 2_u32;
    while taken.contains(&name) {
        name = format!("{wish}{number}");
        number += 1;
    }
    taken.push(name.clone());
    name
}

/// Names the counts beside arrays, out of the way of the declared properties.
fn name_counts(fields: &mut [Field], properties: &Object) {
    for field in fields {
        if let Some(count) = &mut field.count {
            *count = format!("{}_count", field.key);
            while properties.contains_key(count) || count == REST {
                count.push('_');
            }
        }
    }
}
