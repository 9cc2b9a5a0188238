//! Types and values of what is not an argument: attributes of people, facts about the past, derived
//! facts, and what applications add.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::cedar::Value;
use crate::shape::{datetime_text, map_text, string_fits};

/// Sets with more members than this deny the call.
const MAX_MEMBERS: usize = 10_000;

/// The type of an attribute or a fact, as policies see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttributeType {
    /// Cedar `Bool`.
    Bool,
    /// Cedar `Long`.
    Long,
    /// Cedar `String`.
    String,
    /// Cedar `datetime`; the value is a text as in RFC 3339.
    Datetime,
    /// Cedar `decimal`; the value is a text such as `"12.50"`.
    Decimal,
    /// Cedar `Set<String>`.
    Strings,
    /// Cedar `Set<Long>`.
    Longs,
}

/// The value of an attribute or a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AttributeValue {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Long(i64),
    /// A text of at most 64 KiB, a point in time as in RFC 3339, or a decimal number.
    String(String),
    /// A set of texts.
    Strings(BTreeSet<String>),
    /// A set of whole numbers.
    Longs(BTreeSet<i64>),
}

impl AttributeValue {
    /// A point in time, in microseconds since the Unix epoch, UTC; policies see milliseconds.
    /// Times outside the years 0 to 9999 become a text that no type accepts.
    pub fn time(micros: i64) -> Self {
        let millis = micros.div_euclid(1000);
        Self::String(datetime_text(millis).unwrap_or_else(|| format!("{micros} microseconds")))
    }
}

impl AttributeType {
    /// The type in Cedar's schema language.
    pub(crate) fn cedar(self) -> &'static str {
        match self {
            Self::Bool => "Bool",
            Self::Long => "Long",
            Self::String => "String",
            Self::Datetime => "datetime",
            Self::Decimal => "decimal",
            Self::Strings => "Set<String>",
            Self::Longs => "Set<Long>",
        }
    }

    /// Maps a value, or says why it is not of this type.
    pub(crate) fn map(self, value: &AttributeValue) -> Result<Value, String> {
        use AttributeValue as Of;
        let text = |text: &String| {
            string_fits(text)?;
            Ok::<_, String>(Value::text(text))
        };
        let bounded = |length: usize| {
            if length > MAX_MEMBERS {
                return Err(format!(
                    "a set of {length} members, at most {MAX_MEMBERS} can be decided on"
                ));
            }
            Ok(())
        };
        match (self, value) {
            (Self::Bool, Of::Bool(value)) => Ok(Value::bool(*value)),
            (Self::Long, Of::Long(value)) => Ok(Value::long(*value)),
            (Self::String, Of::String(value)) => text(value),
            (Self::Datetime, Of::String(value)) => map_text("date-time", value),
            (Self::Decimal, Of::String(value)) => map_text("decimal", value),
            (Self::Strings, Of::Strings(values)) => {
                bounded(values.len())?;
                let values: Result<Vec<_>, String> = values.iter().map(text).collect();
                Ok(Value::set(values?))
            }
            (Self::Longs, Of::Longs(values)) => {
                bounded(values.len())?;
                let values = values.iter().copied().map(Value::long);
                Ok(Value::set(values))
            }
            // An empty set read from JSON does not tell of what it is one.
            (Self::Longs, Of::Strings(values)) if values.is_empty() => Ok(Value::set([])),
            (Self::Strings, Of::Longs(values)) if values.is_empty() => Ok(Value::set([])),
            (kind, value) => {
                let found = serde_json::to_value(value).unwrap_or(Json::Null);
                let shown: String = found.to_string().chars().take(80).collect();
                Err(format!(
                    "`{shown}` is not of its declared type {}",
                    kind.cedar()
                ))
            }
        }
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for AttributeValue {
    fn from(value: i64) -> Self {
        Self::Long(value)
    }
}

impl From<&str> for AttributeValue {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<BTreeSet<String>> for AttributeValue {
    fn from(value: BTreeSet<String>) -> Self {
        Self::Strings(value)
    }
}

impl From<BTreeSet<i64>> for AttributeValue {
    fn from(value: BTreeSet<i64>) -> Self {
        Self::Longs(value)
    }
}
