//! From a value to the expression that policies see, along the shape that wrote its type.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use cedar_policy::{EntityId, EntityUid};
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use crate::cedar::{Entity, Value};
use crate::entities::type_name;

use super::scalar::{expected, string_fits};
use super::{EnumShape, Field, MapShape, RecordShape, Shape, Tag, TaggedShape};

/// Jsons with more parts than this refuse the call.
const MAX_PARTS: usize = 100_000;

/// Jsons nested deeper than this refuse the call.
const MAX_DEPTH: usize = 128;

/// Why an argument cannot be decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapError {
    /// Path of the argument, such as `order.items[3].price`; empty for the arguments as a whole.
    pub(crate) path: String,
    pub(crate) message: String,
}

/// Arguments as policies see them.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) input: Value,
    /// Every entity that the input names.
    pub(crate) entities: Vec<Entity>,
}

/// Maps the arguments of a call.
pub(crate) fn map_input(shape: &Shape, arguments: &Json) -> Result<Mapped, MapError> {
    let mut mapper = Mapper {
        path: Vec::new(),
        entities: HashMap::new(),
        parts: 0,
    };
    if deeper_than(arguments, MAX_DEPTH) {
        return Err(mapper.fail(format!(
            "arguments nested more than {MAX_DEPTH} deep cannot be decided on, flatten them"
        )));
    }
    let input = mapper.map(shape, arguments)?;
    Ok(Mapped {
        input,
        entities: mapper.entities.into_values().collect(),
    })
}

/// Walks without recursion, since what it guards against is a stack that overflows.
fn deeper_than(value: &Json, limit: usize) -> bool {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Json::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Json::Object(items) => open.extend(items.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    false
}

/// The attributes of a record.
type Pairs<'a> = Vec<(&'a str, Value)>;

enum Segment<'a> {
    Key(&'a str),
    Index(usize),
}

struct Mapper<'a> {
    path: Vec<Segment<'a>>,
    entities: HashMap<EntityUid, Entity>,
    parts: usize,
}

impl<'a> Mapper<'a> {
    fn fail(&self, message: impl Into<String>) -> MapError {
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.extend(key.chars().take(100));
                }
                Segment::Index(index) => {
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        MapError {
            path,
            message: message.into(),
        }
    }

    fn at<T>(
        &mut self,
        segment: Segment<'a>,
        step: impl FnOnce(&mut Self) -> Result<T, MapError>,
    ) -> Result<T, MapError> {
        self.path.push(segment);
        let result = step(self);
        self.path.pop();
        result
    }

    fn map(&mut self, shape: &'a Shape, value: &'a Json) -> Result<Value, MapError> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(self.fail(format!(
                "arguments of more than {MAX_PARTS} parts cannot be decided on, send fewer"
            )));
        }
        match shape {
            Shape::Scalar(scalar) => (scalar.map)(value).map_err(|message| self.fail(message)),
            Shape::Enum(of) => self.one_of(of, value),
            Shape::Record(of) => {
                let object = self.object(value)?;
                let pairs = self.record(of, object, None)?;
                self.finish(pairs)
            }
            Shape::Map(of) => {
                let object = self.object(value)?;
                self.tags(of, object.iter())
            }
            Shape::List(item) => {
                let (set, count) = self.list(item, value)?;
                self.finish(vec![("items", set), ("count", count)])
            }
            Shape::Tuple(items) => self.tuple(items, value),
            Shape::Tagged(of) => self.tagged(of, value),
            Shape::Untagged(alternatives) => self.untagged(alternatives, value),
            Shape::Maybe(inner) => {
                let mut pairs = Vec::new();
                if !value.is_null() {
                    pairs.push(("value", self.map(inner, value)?));
                }
                self.finish(pairs)
            }
            Shape::Opaque => self.opaque(value),
        }
    }

    fn finish<K: AsRef<str>>(&self, pairs: Vec<(K, Value)>) -> Result<Value, MapError> {
        Value::record(pairs).map_err(|why| self.fail(why))
    }

    fn object(&self, value: &'a Json) -> Result<&'a Map<String, Json>, MapError> {
        value
            .as_object()
            .ok_or_else(|| self.fail(expected("an object", value)))
    }

    fn entity_id(&self, entity: &str, id: &str) -> Result<EntityUid, MapError> {
        let name = type_name(entity).map_err(|why| self.fail(why))?;
        Ok(EntityUid::from_type_name_and_id(name, EntityId::new(id)))
    }

    fn one_of(&mut self, of: &EnumShape, value: &Json) -> Result<Value, MapError> {
        let text = value
            .as_str()
            .filter(|text| of.values.iter().any(|known| known == text))
            .ok_or_else(|| self.fail(expected(&choices(&of.values), value)))?;
        self.member(of, text)
    }

    /// A value that is known to be one of the list.
    fn member(&mut self, of: &EnumShape, text: &str) -> Result<Value, MapError> {
        let uid = self.entity_id(&of.entity, text)?;
        let named = Value::entity(&uid);
        self.entities
            .entry(uid)
            .or_insert_with_key(|uid| Entity::named(uid.clone()));
        Ok(named)
    }

    fn record(
        &mut self,
        of: &'a RecordShape,
        object: &'a Map<String, Json>,
        tag: Option<&str>,
    ) -> Result<Pairs<'a>, MapError> {
        let mut pairs = Vec::with_capacity(of.fields.len());
        for field in &of.fields {
            let opaque = matches!(field.shape, Shape::Opaque);
            let value = object.get(&field.key);
            match value.filter(|value| opaque || !value.is_null()) {
                Some(value) => {
                    self.at(Segment::Key(&field.key), |mapper| {
                        mapper.field(field, value, &mut pairs)
                    })?;
                }
                None if field.required => {
                    return self.at(Segment::Key(&field.key), |mapper| {
                        Err(mapper.fail("is missing, send it"))
                    });
                }
                None => {
                    if let Some(count) = &field.count {
                        pairs.push((count, Value::long(0)));
                    }
                }
            }
        }
        let known = |key: &str| tag == Some(key) || of.fields.iter().any(|f| f.key == key);
        let mut others = object.iter().filter(|(key, _)| !known(key)).peekable();
        match &of.rest {
            Some((name, map)) => pairs.push((name, self.tags(map, others)?)),
            None => {
                if let Some((key, _)) = others.peek() {
                    return self.at(Segment::Key(key), |mapper| {
                        Err(mapper.fail(
                            "is not in the tool's schema, so no policy can see it; leave it out, \
                             or declare it in the schema",
                        ))
                    });
                }
            }
        }
        Ok(pairs)
    }

    fn field(
        &mut self,
        field: &'a Field,
        value: &'a Json,
        pairs: &mut Pairs<'a>,
    ) -> Result<(), MapError> {
        if let (Some(count), Shape::List(item)) = (&field.count, &field.shape) {
            let (set, length) = self.list(item, value)?;
            pairs.push((&field.key, set));
            pairs.push((count, length));
        } else {
            pairs.push((&field.key, self.map(&field.shape, value)?));
        }
        Ok(())
    }

    fn list(&mut self, item: &'a Shape, value: &'a Json) -> Result<(Value, Value), MapError> {
        let values = value
            .as_array()
            .ok_or_else(|| self.fail(expected("an array", value)))?;
        let mut mapped = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            mapped.push(self.at(Segment::Index(index), |mapper| mapper.map(item, value))?);
        }
        let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
        Ok((Value::set(mapped), Value::long(count)))
    }

    fn tuple(&mut self, items: &'a [(Shape, bool)], value: &'a Json) -> Result<Value, MapError> {
        let values = value
            .as_array()
            .ok_or_else(|| self.fail(expected("an array", value)))?;
        if values.len() > items.len() {
            return Err(self.fail(format!(
                "has {} items of which policies can see {}, leave the others out",
                values.len(),
                items.len()
            )));
        }
        let mut pairs = Vec::with_capacity(items.len());
        for (index, (shape, required)) in items.iter().enumerate() {
            match values.get(index).filter(|value| !value.is_null()) {
                Some(value) => {
                    let mapped =
                        self.at(Segment::Index(index), |mapper| mapper.map(shape, value))?;
                    pairs.push((index.to_string(), mapped));
                }
                None if *required => {
                    return self.at(Segment::Index(index), |mapper| {
                        Err(mapper.fail("is missing, send it"))
                    });
                }
                None => {}
            }
        }
        self.finish(pairs)
    }

    fn tags(
        &mut self,
        of: &'a MapShape,
        entries: impl Iterator<Item = (&'a String, &'a Json)>,
    ) -> Result<Value, MapError> {
        let mut canonical = String::from("{");
        let mut keys = Vec::new();
        let mut tags = Vec::new();
        let sorted: BTreeMap<&'a String, &'a Json> = entries.collect();
        for (key, value) in sorted {
            self.at(Segment::Key(key), |mapper| {
                string_fits(key).map_err(|message| mapper.fail(message))?;
                if !value.is_null() {
                    tags.push((key.clone(), mapper.map(&of.value, value)?));
                }
                Ok(())
            })?;
            keys.push(Value::text(key));
            write_canonical_text(key, &mut canonical);
            canonical.push(':');
            write_canonical(value, &mut canonical);
            canonical.push(',');
        }
        canonical.push('}');
        let uid = self.entity_id(&of.entity, &hex(&Sha256::digest(canonical)))?;
        let named = Value::entity(&uid);
        let attributes = [("keys".to_owned(), Value::set(keys))];
        let entity = Entity::new(uid.clone(), attributes, [], tags);
        self.entities.insert(uid, entity);
        Ok(named)
    }

    fn tagged(&mut self, of: &'a TaggedShape, value: &'a Json) -> Result<Value, MapError> {
        let (name, content) = match &of.tag {
            Tag::Internal(key) => {
                let object = self.object(value)?;
                (object.get(key), Some(value))
            }
            Tag::External => match value {
                Json::Object(object) if object.len() == 1 => {
                    let (name, content) = object.iter().next().unzip();
                    return self.variant(of, name.map(String::as_str), content, value);
                }
                other => (Some(other), None),
            },
        };
        self.variant(of, name.and_then(Json::as_str), content, value)
    }

    fn variant(
        &mut self,
        of: &'a TaggedShape,
        name: Option<&str>,
        content: Option<&'a Json>,
        whole: &Json,
    ) -> Result<Value, MapError> {
        let variant = of
            .variants
            .iter()
            .find(|variant| Some(variant.name.as_str()) == name)
            .ok_or_else(|| self.fail(expected(&choices(&of.kind.values), whole)))?;
        let kind = self.member(&of.kind, &variant.name)?;
        let mut pairs: Pairs<'a> = vec![("kind", kind)];
        match (&of.tag, &variant.content, content) {
            (Tag::Internal(key), Some(Shape::Record(record)), Some(Json::Object(object))) => {
                let inner = self.record(record, object, Some(key))?;
                pairs.push((&variant.attribute, self.finish(inner)?));
            }
            (Tag::External, Some(shape), Some(content)) => {
                let inner = self.at(Segment::Key(&variant.name), |mapper| {
                    mapper.map(shape, content)
                })?;
                pairs.push((&variant.attribute, inner));
            }
            (Tag::External, None, None) => {}
            _ => return Err(self.fail(expected(&choices(&of.kind.values), whole))),
        }
        self.finish(pairs)
    }

    /// Every alternative that accepts the value is filled in: whichever the tool picks, a policy
    /// that looks for it finds it.
    fn untagged(
        &mut self,
        alternatives: &'a [(String, Shape)],
        value: &'a Json,
    ) -> Result<Value, MapError> {
        let mut pairs = Vec::new();
        let mut first_error = None;
        for (name, shape) in alternatives {
            match self.map(shape, value) {
                Ok(mapped) => pairs.push((name.as_str(), mapped)),
                Err(error) if self.parts > MAX_PARTS => return Err(error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) if pairs.is_empty() => Err(error),
            _ => self.finish(pairs),
        }
    }

    fn opaque(&mut self, value: &Json) -> Result<Value, MapError> {
        let mut canonical = String::new();
        write_canonical(value, &mut canonical);
        let bytes = i64::try_from(canonical.len()).unwrap_or(i64::MAX);
        self.finish(vec![
            ("present", Value::bool(!value.is_null())),
            ("bytes", Value::long(bytes)),
            ("sha256", Value::text(&hex(&Sha256::digest(canonical)))),
        ])
    }
}

fn choices(values: &[String]) -> String {
    let shown: Vec<String> = values.iter().take(12).map(|v| format!("`{v}`")).collect();
    let more = if values.len() > 12 { ", …" } else { "" };
    format!("one of {}{more}", shown.join(", "))
}

/// JSON with sorted keys and without white space, so that equal values have equal digests.
fn write_canonical(value: &Json, out: &mut String) {
    match value {
        Json::Object(object) => {
            let sorted: BTreeMap<&String, &Json> = object.iter().collect();
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical_text(key, out);
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Json::Array(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(value, out);
            }
            out.push(']');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

fn write_canonical_text(text: &str, out: &mut String) {
    let _ = write!(out, "{}", Json::from(text));
}

/// Digest of arguments for explanations; none of those that are nested too deep to be decided on.
pub(crate) fn arguments_digest(arguments: &Json) -> String {
    let mut canonical = String::new();
    if !deeper_than(arguments, MAX_DEPTH) {
        write_canonical(arguments, &mut canonical);
    }
    hex(&Sha256::digest(canonical))
}

/// Bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
