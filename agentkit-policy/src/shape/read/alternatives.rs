//! `oneOf` and `anyOf`: optional values, closed lists, enums with and without a tag.

use serde_json::{Map, Value, json};

use super::super::{EnumShape, Shape, Tag, TaggedShape, Variant};
use super::{
    Object, Read, ReadError, Reader, STRUCTURE, any_json, free_name, implied_type, is_closed,
    kind_of, short_name,
};

impl Reader<'_> {
    pub(super) fn alternatives(
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

fn is_null(schema: &Object) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
        || schema.get("const").is_some_and(Value::is_null)
}
