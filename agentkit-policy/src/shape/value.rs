//! From a value to the expression that policies see, along the shape that wrote its type.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use cedar_policy::{Entity, EntityId, EntityUid, RestrictedExpression};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::entities::type_name;

use super::scalar::{expected, string_fits};
use super::{EnumShape, Field, MapShape, RecordShape, Shape, Tag, TaggedShape};

/// Values with more parts than this refuse the call.
const MAX_PARTS: usize = 100_000;

/// Values nested deeper than this refuse the call.
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
    pub(crate) input: RestrictedExpression,
    /// Every entity that the input names.
    pub(crate) entities: Vec<Entity>,
}

/// Maps the arguments of a call.
pub(crate) fn map_input(shape: &Shape, arguments: &Value) -> Result<Mapped, MapError> {
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
fn deeper_than(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(items) => open.extend(items.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    false
}

enum Segment {
    Key(String),
    Index(usize),
}

struct Mapper {
    path: Vec<Segment>,
    entities: HashMap<EntityUid, Entity>,
    parts: usize,
}

type Expression = RestrictedExpression;

impl Mapper {
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
        segment: Segment,
        step: impl FnOnce(&mut Self) -> Result<T, MapError>,
    ) -> Result<T, MapError> {
        self.path.push(segment);
        let result = step(self);
        self.path.pop();
        result
    }

    fn map(&mut self, shape: &Shape, value: &Value) -> Result<Expression, MapError> {
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
                self.finish(vec![("items".to_owned(), set), ("count".to_owned(), count)])
            }
            Shape::Tuple(items) => self.tuple(items, value),
            Shape::Tagged(of) => self.tagged(of, value),
            Shape::Untagged(alternatives) => self.untagged(alternatives, value),
            Shape::Maybe(inner) => {
                let mut pairs = Vec::new();
                if !value.is_null() {
                    pairs.push(("value".to_owned(), self.map(inner, value)?));
                }
                self.finish(pairs)
            }
            Shape::Opaque => self.opaque(value),
        }
    }

    fn finish(&self, pairs: Vec<(String, Expression)>) -> Result<Expression, MapError> {
        Expression::new_record(pairs).map_err(|error| self.fail(error.to_string()))
    }

    fn object<'v>(&self, value: &'v Value) -> Result<&'v Map<String, Value>, MapError> {
        value
            .as_object()
            .ok_or_else(|| self.fail(expected("an object", value)))
    }

    fn entity_id(&self, entity: &str, id: &str) -> Result<EntityUid, MapError> {
        let name = type_name(entity).map_err(|why| self.fail(why))?;
        Ok(EntityUid::from_type_name_and_id(name, EntityId::new(id)))
    }

    fn one_of(&mut self, of: &EnumShape, value: &Value) -> Result<Expression, MapError> {
        let text = value
            .as_str()
            .filter(|text| of.values.iter().any(|known| known == text))
            .ok_or_else(|| self.fail(expected(&choices(&of.values), value)))?;
        let uid = self.entity_id(&of.entity, text)?;
        self.entities
            .entry(uid.clone())
            .or_insert_with(|| Entity::with_uid(uid.clone()));
        Ok(Expression::new_entity_uid(uid))
    }

    fn record(
        &mut self,
        of: &RecordShape,
        object: &Map<String, Value>,
        tag: Option<&str>,
    ) -> Result<Vec<(String, Expression)>, MapError> {
        let mut pairs = Vec::with_capacity(of.fields.len());
        for field in &of.fields {
            let opaque = matches!(field.shape, Shape::Opaque);
            let value = object.get(&field.key);
            match value.filter(|value| opaque || !value.is_null()) {
                Some(value) => {
                    self.at(Segment::Key(field.key.clone()), |mapper| {
                        mapper.field(field, value, &mut pairs)
                    })?;
                }
                None if field.required => {
                    return self.at(Segment::Key(field.key.clone()), |mapper| {
                        Err(mapper.fail("is missing, send it"))
                    });
                }
                None => {
                    if let Some(count) = &field.count {
                        pairs.push((count.clone(), Expression::new_long(0)));
                    }
                }
            }
        }
        let known = |key: &str| tag == Some(key) || of.fields.iter().any(|f| f.key == key);
        let mut others = object.iter().filter(|(key, _)| !known(key)).peekable();
        match &of.rest {
            Some((name, map)) => pairs.push((name.clone(), self.tags(map, others)?)),
            None => {
                if let Some((key, _)) = others.peek() {
                    return self.at(Segment::Key((*key).clone()), |mapper| {
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
        field: &Field,
        value: &Value,
        pairs: &mut Vec<(String, Expression)>,
    ) -> Result<(), MapError> {
        if let (Some(count), Shape::List(item)) = (&field.count, &field.shape) {
            let (set, length) = self.list(item, value)?;
            pairs.push((field.key.clone(), set));
            pairs.push((count.clone(), length));
        } else {
            pairs.push((field.key.clone(), self.map(&field.shape, value)?));
        }
        Ok(())
    }

    fn list(&mut self, item: &Shape, value: &Value) -> Result<(Expression, Expression), MapError> {
        let values = value
            .as_array()
            .ok_or_else(|| self.fail(expected("an array", value)))?;
        let mut mapped = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            mapped.push(self.at(Segment::Index(index), |mapper| mapper.map(item, value))?);
        }
        let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
        Ok((Expression::new_set(mapped), Expression::new_long(count)))
    }

    fn tuple(&mut self, items: &[(Shape, bool)], value: &Value) -> Result<Expression, MapError> {
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

    fn tags<'v>(
        &mut self,
        of: &MapShape,
        entries: impl Iterator<Item = (&'v String, &'v Value)>,
    ) -> Result<Expression, MapError> {
        let mut canonical = String::from("{");
        let mut keys = Vec::new();
        let mut tags = Vec::new();
        let sorted: BTreeMap<&String, &Value> = entries.collect();
        for (key, value) in sorted {
            self.at(Segment::Key(key.clone()), |mapper| {
                string_fits(key).map_err(|message| mapper.fail(message))?;
                if !value.is_null() {
                    tags.push((key.clone(), mapper.map(&of.value, value)?));
                }
                Ok(())
            })?;
            keys.push(Expression::new_string(key.clone()));
            write_canonical_text(key, &mut canonical);
            canonical.push(':');
            write_canonical(value, &mut canonical);
            canonical.push(',');
        }
        canonical.push('}');
        let uid = self.entity_id(&of.entity, &hex(&Sha256::digest(canonical)))?;
        let attributes = [("keys".to_owned(), Expression::new_set(keys))];
        let entity = Entity::new_with_tags(uid.clone(), attributes, [], tags)
            .map_err(|error| self.fail(error.to_string()))?;
        self.entities.insert(uid.clone(), entity);
        Ok(Expression::new_entity_uid(uid))
    }

    fn tagged(&mut self, of: &TaggedShape, value: &Value) -> Result<Expression, MapError> {
        let (name, content) = match &of.tag {
            Tag::Internal(key) => {
                let object = self.object(value)?;
                (object.get(key), Some(value))
            }
            Tag::External => match value {
                Value::Object(object) if object.len() == 1 => {
                    let (name, content) = object.iter().next().unzip();
                    return self.variant(of, name.map(String::as_str), content, value);
                }
                other => (Some(other), None),
            },
        };
        self.variant(of, name.and_then(Value::as_str), content, value)
    }

    fn variant(
        &mut self,
        of: &TaggedShape,
        name: Option<&str>,
        content: Option<&Value>,
        whole: &Value,
    ) -> Result<Expression, MapError> {
        let variant = of
            .variants
            .iter()
            .find(|variant| Some(variant.name.as_str()) == name)
            .ok_or_else(|| self.fail(expected(&choices(&of.kind.values), whole)))?;
        let kind = self.one_of(&of.kind, &Value::String(variant.name.clone()))?;
        let mut pairs = vec![("kind".to_owned(), kind)];
        match (&of.tag, &variant.content, content) {
            (Tag::Internal(key), Some(Shape::Record(record)), Some(Value::Object(object))) => {
                let inner = self.record(record, object, Some(key))?;
                pairs.push((variant.attribute.clone(), self.finish(inner)?));
            }
            (Tag::External, Some(shape), Some(content)) => {
                let inner = self.at(Segment::Key(variant.name.clone()), |mapper| {
                    mapper.map(shape, content)
                })?;
                pairs.push((variant.attribute.clone(), inner));
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
        alternatives: &[(String, Shape)],
        value: &Value,
    ) -> Result<Expression, MapError> {
        let mut pairs = Vec::new();
        let mut first_error = None;
        for (name, shape) in alternatives {
            match self.map(shape, value) {
                Ok(mapped) => pairs.push((name.clone(), mapped)),
                Err(error) if self.parts > MAX_PARTS => return Err(error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) if pairs.is_empty() => Err(error),
            _ => self.finish(pairs),
        }
    }

    fn opaque(&mut self, value: &Value) -> Result<Expression, MapError> {
        let mut canonical = String::new();
        write_canonical(value, &mut canonical);
        let bytes = i64::try_from(canonical.len()).unwrap_or(i64::MAX);
        self.finish(vec![
            ("present".to_owned(), Expression::new_bool(!value.is_null())),
            ("bytes".to_owned(), Expression::new_long(bytes)),
            (
                "sha256".to_owned(),
                Expression::new_string(hex(&Sha256::digest(canonical))),
            ),
        ])
    }
}

fn choices(values: &[String]) -> String {
    let shown: Vec<String> = values.iter().take(12).map(|v| format!("`{v}`")).collect();
    let more = if values.len() > 12 { ", …" } else { "" };
    format!("one of {}{more}", shown.join(", "))
}

/// JSON with sorted keys and without white space, so that equal values have equal digests.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
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
        Value::Array(values) => {
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
    let _ = write!(out, "{}", Value::from(text));
}

/// Digest of arguments for explanations; none of those that are nested too deep to be decided on.
pub(crate) fn arguments_digest(arguments: &Value) -> String {
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
