//! A YAML text as a tree whose every node knows its line, so that errors can name it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use crate::load_error::Finding;
use crate::tool::nearest;

/// Place in a test file, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Place,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) at: Place,
    pub(crate) name: String,
}

/// Reads a text into its tree.
pub(crate) fn parse(file: &str, text: &str) -> Result<Node, Box<Finding>> {
    // A leading zero or an underscore is a spelling, not a number: ids keep theirs.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
    };
    serde_saphyr::from_str_with_options::<Spanned<Kind>>(text, options)
        .map(Node::from)
        .map_err(|error| {
            let place = error.location();
            let message = error.without_snippet().to_string();
            // The place stands before the message already.
            let message = message
                .rsplit_once(" at line ")
                .map_or(message.as_str(), |(before, _)| before);
            Box::new(Finding {
                file: Some(file.to_owned()),
                line: place.and_then(|at| u32::try_from(at.line()).ok()),
                column: place.and_then(|at| u32::try_from(at.column()).ok()),
                ..Finding::about(format!("not readable as YAML: {message}"))
                    .suggest("correct the YAML; texts with `:` or `#` go into quotes")
            })
        })
}

impl<T> From<&Spanned<T>> for Place {
    fn from(of: &Spanned<T>) -> Self {
        Self {
            line: u32::try_from(of.referenced.line()).unwrap_or(u32::MAX),
            column: u32::try_from(of.referenced.column()).unwrap_or(u32::MAX),
        }
    }
}

impl From<Spanned<Kind>> for Node {
    fn from(of: Spanned<Kind>) -> Self {
        Self {
            at: Place::from(&of),
            kind: of.value,
        }
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Kind, E> {
        Number::from_f64(value)
            .map(Kind::Number)
            .ok_or_else(|| E::custom(format!("`{value}` is no number that JSON knows")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Kind>>()? {
            list.push(Node::from(item));
        }
        Ok(Kind::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Kind, A::Error> {
        let mut map: Vec<(Key, Node)> = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Spanned<Kind>>()? {
            if map.iter().any(|(known, _)| known.name == key.value) {
                return Err(A::Error::custom(format!(
                    "the key `{}` is taken",
                    key.value
                )));
            }
            let key = Key {
                at: Place::from(&key),
                name: key.value,
            };
            map.push((key, Node::from(value)));
        }
        Ok(Kind::Map(map))
    }
}

impl Node {
    /// What the node is, for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".to_owned(),
            Kind::Bool(value) => format!("`{value}`"),
            Kind::Number(value) => format!("`{value}`"),
            Kind::Text(value) => format!("`{}`", value.chars().take(80).collect::<String>()),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a map".to_owned(),
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The node as the JSON that a tool would be called with.
    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(value) => Value::Number(value.clone()),
            Kind::Text(value) => Value::String(value.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Kind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.name.clone(), value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// Puts a value at a path of keys, making maps on the way; what stood there is replaced.
    pub(crate) fn put(&mut self, path: &[&str], value: Self, key_at: Place) -> Result<(), String> {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return Ok(());
        };
        if matches!(self.kind, Kind::Null) {
            self.kind = Kind::Map(Vec::new());
        }
        let shown = self.shown();
        let Kind::Map(entries) = &mut self.kind else {
            return Err(format!("`{first}` cannot stand in {shown}"));
        };
        if let Some((_, inner)) = entries.iter_mut().find(|(key, _)| key.name == *first) {
            return inner.put(rest, value, key_at);
        }
        let mut inner = Self {
            at: value.at,
            kind: Kind::Null,
        };
        inner.put(rest, value, key_at)?;
        let key = Key {
            at: key_at,
            name: (*first).to_owned(),
        };
        entries.push((key, inner));
        Ok(())
    }
}

/// Reads the fields of maps and gathers everything that is wrong.
pub(crate) struct Reader<'a> {
    file: &'a str,
    pub(crate) findings: Vec<Finding>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a str) -> Self {
        Self {
            file,
            findings: Vec::new(),
        }
    }

    pub(crate) fn complain(
        &mut self,
        at: Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.findings.push(Finding {
            file: Some(self.file.to_owned()),
            line: Some(at.line),
            column: Some(at.column),
            ..Finding::about(message).suggest(remedy)
        });
    }

    /// The fields of a map; other keys than the known ones are named with the nearest.
    pub(crate) fn fields<'n>(
        &mut self,
        of: &str,
        node: &'n Node,
        known: &'static [&'static str],
    ) -> Fields<'n> {
        let Kind::Map(entries) = &node.kind else {
            self.complain(
                node.at,
                format!("{of} is {}, not a map", node.shown()),
                format!("its fields are {}", known.join(", ")),
            );
            return Fields {
                at: node.at,
                known,
                entries: &[],
            };
        };
        for (key, _) in entries {
            if !known.contains(&key.name.as_str()) {
                let remedy = match nearest(&key.name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the fields are {}", known.join(", ")),
                };
                self.complain(
                    key.at,
                    format!("`{}` is not a field of {of}", key.name),
                    remedy,
                );
            }
        }
        Fields {
            at: node.at,
            known,
            entries,
        }
    }

    pub(crate) fn text(&mut self, field: &str, node: &Node) -> Option<String> {
        if let Some(text) = node.as_text() {
            return Some(text.to_owned());
        }
        self.complain(
            node.at,
            format!("`{field}` is {}, not a text", node.shown()),
            "write a text, in quotes if it looks like something else",
        );
        None
    }

    /// A list of texts; a single one may stand alone.
    pub(crate) fn texts(&mut self, field: &str, node: &Node) -> Vec<(Place, String)> {
        match &node.kind {
            Kind::Text(text) => vec![(node.at, text.clone())],
            Kind::List(items) => items
                .iter()
                .filter_map(|item| Some((item.at, self.text(field, item)?)))
                .collect(),
            Kind::Null => Vec::new(),
            _ => {
                self.complain(
                    node.at,
                    format!(
                        "`{field}` is {}, not a text or a list of texts",
                        node.shown()
                    ),
                    "write `[one, two]`",
                );
                Vec::new()
            }
        }
    }

    pub(crate) fn whole(&mut self, field: &str, node: &Node) -> Option<u32> {
        let number = match &node.kind {
            Kind::Number(number) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
            _ => None,
        };
        if number.is_none() {
            self.complain(
                node.at,
                format!("`{field}` is {}, not a whole number", node.shown()),
                "write a number from 0 on",
            );
        }
        number
    }
}

/// The fields of one map.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'n> {
    pub(crate) at: Place,
    known: &'static [&'static str],
    entries: &'n [(Key, Node)],
}

impl<'n> Fields<'n> {
    pub(crate) fn get(&self, name: &str) -> Option<&'n Node> {
        debug_assert!(self.known.contains(&name), "`{name}` is read but not known");
        self.entries
            .iter()
            .find(|(key, _)| key.name == name)
            .map(|(_, node)| node)
    }
}
