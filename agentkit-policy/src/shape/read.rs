//! From a JSON Schema to a shape.
//!
//! What only narrows the values (`minLength`, `pattern`, `not`, …) is not looked at: it hides
//! nothing. What could hide an argument from the policies is refused, with the property's path.

use serde_json::{Map, Value, json};

use super::scalar;
use super::{EnumShape, Field, MapShape, Names, RecordShape, Shape, Tag, TaggedShape, Variant};

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

    /// One schema for what must hold all at once; none where it refers to itself.
    fn merge(&mut self, base: &Object, parts: &[Value]) -> Result<Option<Object>, ReadError> {
        let mut merged = base.clone();
        merged.remove("allOf");
        for part in parts {
            let part = match part {
                Value::Bool(_) => continue,
                Value::Object(part) => match self.resolve(part.clone())? {
                    Some(part) => part,
                    None => return Ok(None),
                },
                other => {
                    return Err(self.fail(
                        format!("`{other}` is not a JSON Schema"),
                        "use an object, `true` or `false`",
                    ));
                }
            };
            self.refuse_beyond(&part)?;
            let part = match part.get("allOf") {
                Some(inner) => {
                    let inner = self.list_of(inner, "allOf")?;
                    match self.merge(&part, &inner)? {
                        Some(part) => part,
                        None => return Ok(None),
                    }
                }
                None => part,
            };
            self.merge_one(&mut merged, part)?;
        }
        Ok(Some(merged))
    }

    /// Follows `$ref`s that stand alone; none on a cycle.
    fn resolve(&mut self, mut schema: Object) -> Result<Option<Object>, ReadError> {
        while let Some(reference) = schema.remove("$ref") {
            let (name, target) = self.lookup(&reference)?;
            if self.references.contains(&name) {
                return Ok(None);
            }
            self.references.push(name);
            let Value::Object(target) = target else {
                return Ok(Some(schema));
            };
            if STRUCTURE
                .iter()
                .any(|keyword| schema.contains_key(*keyword))
            {
                let parts = [Value::Object(target)];
                return self.merge(&schema, &parts);
            }
            schema = target;
        }
        Ok(Some(schema))
    }

    fn merge_one(&self, into: &mut Object, part: Object) -> Result<(), ReadError> {
        for (keyword, value) in part {
            let Some(present) = into.get_mut(&keyword) else {
                into.insert(keyword, value);
                continue;
            };
            if *present == value {
                continue;
            }
            match (keyword.as_str(), present, value) {
                (
                    "properties" | "$defs" | "definitions",
                    Value::Object(ours),
                    Value::Object(theirs),
                ) => {
                    for (key, schema) in theirs {
                        let both = match ours.remove(&key) {
                            Some(first) if first != schema => json!({"allOf": [first, schema]}),
                            _ => schema,
                        };
                        ours.insert(key, both);
                    }
                }
                ("required", Value::Array(ours), Value::Array(theirs)) => ours.extend(theirs),
                ("enum", Value::Array(ours), Value::Array(theirs)) => {
                    ours.retain(|value| theirs.contains(value));
                }
                // Open beats closed: a key that either part declares must be seen.
                ("additionalProperties", ours @ Value::Bool(false), theirs) => *ours = theirs,
                ("oneOf" | "anyOf" | "patternProperties" | "items" | "prefixItems", ..) => {
                    return Err(self.fail(
                        format!("`allOf` combines two different `{keyword}`"),
                        "write the combination out in one schema",
                    ));
                }
                ("type", ours, theirs) => {
                    if let Some(narrower) = common_type(ours, &theirs) {
                        *ours = narrower;
                    } else {
                        return Err(self.fail(
                            format!("`allOf` combines the types {ours} and {theirs}"),
                            "no value has both, name one type",
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
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

    fn alternatives(
        &mut self,
        schema: &Object,
        keyword: &str,
        branches: &[Value],
    ) -> Result<Read, ReadError> {
        let mut base = schema.clone();
        base.remove(keyword);
        let mut nullable = false;
        let mut resolved: Vec<Value> = Vec::new();
        for branch in branches {
            match branch {
                Value::Object(object) => {
                    let mark = self.references.len();
                    // A branch that leads back to itself stays a reference, and becomes any JSON.
                    let followed = self.resolve(object.clone())?;
                    self.references.truncate(mark);
                    let object = followed.unwrap_or_else(|| object.clone());
                    if is_null(&object) {
                        nullable = true;
                    } else {
                        self.refuse_beyond(&object)?;
                        resolved.push(Value::Object(object));
                    }
                }
                Value::Bool(false) => {}
                other => resolved.push(other.clone()),
            }
        }
        let shape = if base.contains_key("properties") {
            let flat = self.flattened(base, &resolved)?;
            self.read_object(&flat)?.shape
        } else if let [only] = resolved.as_slice() {
            let read = match self.merge(&base, std::slice::from_ref(only))? {
                Some(merged) => self.read_object(&merged)?,
                None => any_json(),
            };
            nullable |= read.nullable;
            read.shape
        } else if let Some(values) = constants(&resolved) {
            let read = self.values(&values)?;
            nullable |= read.nullable;
            read.shape
        } else if resolved.iter().all(only_narrows) {
            let read = self.read_object(&base)?;
            nullable |= read.nullable;
            read.shape
        } else if let Some(tag) = internal_tag(&resolved) {
            self.internally_tagged(&tag, &resolved)?
        } else if let Some(variants) = external_variants(&resolved) {
            self.externally_tagged(&variants)?
        } else {
            let read = self.untagged(&resolved)?;
            nullable |= read.nullable;
            read.shape
        };
        Ok(Read { shape, nullable })
    }

    /// Properties beside alternatives, as serde's `flatten` writes them: one record that has
    /// the keys of all alternatives, none of them required.
    fn flattened(&mut self, base: Object, branches: &[Value]) -> Result<Object, ReadError> {
        let mut flat = base;
        let mut found: Vec<(String, Vec<Value>)> = Vec::new();
        let mut open = Value::Bool(false);
        for branch in branches {
            let Some(branch) = branch.as_object() else {
                continue;
            };
            let Some(branch) = self.merge(&Map::new(), &[Value::Object(branch.clone())])? else {
                continue;
            };
            for keyword in ["oneOf", "anyOf", "patternProperties"] {
                if branch.contains_key(keyword) {
                    return Err(self.fail(
                        format!("an alternative beside `properties` holds `{keyword}`"),
                        "write the alternatives out in one list of objects",
                    ));
                }
            }
            if let Some(values) = branch
                .get("additionalProperties")
                .filter(|values| **values != Value::Bool(false))
            {
                open = values.clone();
            }
            let properties = branch.get("properties").and_then(Value::as_object);
            for (key, schema) in properties.into_iter().flatten() {
                match found.iter_mut().find(|(known, _)| known == key) {
                    Some((_, schemas)) if schemas.contains(schema) => {}
                    Some((_, schemas)) => schemas.push(schema.clone()),
                    None => found.push((key.clone(), vec![schema.clone()])),
                }
            }
        }
        if open != Value::Bool(false) && is_closed(&flat) {
            flat.insert("additionalProperties".to_owned(), open);
        }
        let Some(Value::Object(properties)) = flat.get_mut("properties") else {
            return Ok(flat);
        };
        for (key, mut schemas) in found {
            if let Some(own) = properties.get(&key) {
                schemas.insert(0, own.clone());
            }
            let schema = match schemas.as_slice() {
                [only] => only.clone(),
                several => json!({ "anyOf": several }),
            };
            properties.insert(key, schema);
        }
        Ok(flat)
    }

    fn internally_tagged(&mut self, tag: &str, branches: &[Value]) -> Result<Shape, ReadError> {
        let mut variants = Vec::new();
        for branch in branches.iter().filter_map(Value::as_object) {
            let mut rest = branch.clone();
            let name = rest
                .get_mut("properties")
                .and_then(Value::as_object_mut)
                .and_then(|properties| properties.remove(tag))
                .as_ref()
                .and_then(constant_text)
                .unwrap_or_default();
            // An object without further keys would otherwise read as a map of anything.
            if rest.get("properties").is_none() {
                rest.insert("properties".to_owned(), json!({}));
            }
            let content = self.at(&name, |reader| reader.object_or_fail(&rest))?;
            variants.push((name, Some(content)));
        }
        Ok(self.tagged(Tag::Internal(tag.to_owned()), variants))
    }

    fn object_or_fail(&mut self, schema: &Object) -> Result<Shape, ReadError> {
        match self.read_object(schema)?.shape {
            shape @ Shape::Record(_) => Ok(shape),
            _ => Err(self.fail(
                "a tagged alternative whose content is not a plain object",
                "list its keys under `properties`",
            )),
        }
    }

    fn externally_tagged(&mut self, found: &[(String, Option<Value>)]) -> Result<Shape, ReadError> {
        let mut variants = Vec::new();
        for (name, content) in found {
            let shape = match content {
                Some(schema) => Some(self.at(name, |reader| reader.read_in_place(schema))?),
                None => None,
            };
            variants.push((name.clone(), shape));
        }
        Ok(self.tagged(Tag::External, variants))
    }

    fn tagged(&mut self, tag: Tag, variants: Vec<(String, Option<Shape>)>) -> Shape {
        let kind = EnumShape {
            entity: self.at_name("kind"),
            values: variants.iter().map(|(name, _)| name.clone()).collect(),
        };
        let mut taken = vec!["kind".to_owned()];
        let variants = variants
            .into_iter()
            .map(|(name, content)| Variant {
                attribute: free_name(&name, &mut taken),
                name,
                content,
            })
            .collect();
        Shape::Tagged(TaggedShape {
            tag,
            kind,
            variants,
        })
    }

    fn at_name(&mut self, part: &str) -> String {
        self.path.push(part.to_owned());
        let name = self.claim(part);
        self.path.pop();
        name
    }

    fn untagged(&mut self, branches: &[Value]) -> Result<Read, ReadError> {
        let mut taken = Vec::new();
        let mut alternatives = Vec::new();
        let mut nullable = false;
        for branch in branches {
            let name = free_name(branch_name(branch), &mut taken);
            let read = self.at(&name, |reader| reader.read(branch))?;
            nullable |= read.nullable;
            alternatives.push((name, read.shape));
        }
        Ok(Read {
            shape: Shape::Untagged(alternatives),
            nullable,
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

fn is_null(schema: &Object) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
        || schema.get("const").is_some_and(Value::is_null)
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

fn branch_name(branch: &Value) -> &'static str {
    let Some(object) = branch.as_object() else {
        return "any";
    };
    let constant = object
        .get("const")
        .or_else(|| object.get("enum").and_then(|values| values.get(0)));
    match object.get("type").and_then(Value::as_str) {
        Some(kind) => short_name(kind),
        None => match constant {
            Some(value) => kind_of(value),
            None => implied_type(object).map_or("any", short_name),
        },
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

fn common_type(ours: &Value, theirs: &Value) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let integer = Value::from("integer");
    let number = Value::from("number");
    let (ours, theirs) = (list(ours), list(theirs));
    let both: Vec<Value> = ours
        .iter()
        .chain(&theirs)
        .filter(|kind| {
            let fits =
                |side: &[Value]| side.contains(kind) || **kind == integer && side.contains(&number);
            fits(&ours) && fits(&theirs)
        })
        .fold(Vec::new(), |mut found, kind| {
            if !found.contains(kind) {
                found.push(kind.clone());
            }
            found
        });
    match both.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(Value::Array(both)),
    }
}

/// True if a schema says nothing about what the value is, such as `{"required": ["a"]}`.
fn only_narrows(schema: &Value) -> bool {
    schema.as_object().is_some_and(|object| {
        !STRUCTURE
            .iter()
            .any(|keyword| object.contains_key(*keyword))
    }) && schema.get("$ref").is_none()
}

/// All values, if each schema is a closed list of scalars.
fn constants(schemas: &[Value]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for schema in schemas {
        let listed = match (schema.get("const"), schema.get("enum")) {
            (Some(only), _) => vec![only.clone()],
            (None, Some(Value::Array(several))) => several.clone(),
            _ => return None,
        };
        if listed
            .iter()
            .any(|value| value.is_object() || value.is_array())
        {
            return None;
        }
        values.extend(listed);
    }
    Some(values)
}

fn constant_text(schema: &Value) -> Option<String> {
    match (
        schema.get("const"),
        schema.get("enum").and_then(Value::as_array),
    ) {
        (Some(Value::String(text)), _) => Some(text.clone()),
        (None, Some(values)) => match values.as_slice() {
            [Value::String(text)] => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn requires(schema: &Value, key: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|required| required.iter().any(|name| name == key))
}

/// The property that tells the alternatives apart: in each a different constant text.
fn internal_tag(branches: &[Value]) -> Option<String> {
    let first = branches.first()?.get("properties")?.as_object()?;
    first
        .keys()
        .find(|key| {
            let mut names = Vec::new();
            branches.iter().all(|branch| {
                let name = branch
                    .get("properties")
                    .and_then(|properties| properties.get(key.as_str()))
                    .and_then(constant_text);
                match name {
                    Some(name) if requires(branch, key) && !names.contains(&name) => {
                        names.push(name);
                        true
                    }
                    _ => false,
                }
            })
        })
        .cloned()
}

/// The variants of an enum as serde writes it by default: a text, or an object with one key.
fn external_variants(branches: &[Value]) -> Option<Vec<(String, Option<Value>)>> {
    let mut variants: Vec<(String, Option<Value>)> = Vec::new();
    for branch in branches {
        if let Some(values) = constants(std::slice::from_ref(branch)) {
            for value in values {
                variants.push((value.as_str()?.to_owned(), None));
            }
            continue;
        }
        let object = branch.as_object()?;
        let properties = object.get("properties")?.as_object()?;
        let (name, content) = properties.iter().next()?;
        if properties.len() != 1 || !requires(branch, name) || !is_closed(object) {
            return None;
        }
        variants.push((name.clone(), Some(content.clone())));
    }
    let mut names: Vec<&String> = variants.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    (names.len() == variants.len()).then_some(variants)
}
