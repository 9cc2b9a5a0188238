use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, de};

/// The type without a value: what a tool that never asks a question suspends with, and what such
/// a question would be answered with.
///
/// Its JSON Schema is `false`, and decoding it always fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Never {}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(
            "no value fits here: the tool asks nothing",
        ))
    }
}

impl JsonSchema for Never {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Never".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        false.into()
    }
}

/// What a tool comes back with: a result, or a question that must be answered before it can have
/// one.
///
/// A tool that suspends is called again with the answer once there is one; what it did before it
/// suspended is not undone, so it should suspend before it has effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<T, S = Never> {
    /// The tool is done; this is its result.
    Done(T),
    /// The tool waits for an answer; this is what to show to whoever gives it.
    Suspend(S),
}

/// A result that is JSON by declaration: the same on the wire as `T` itself, for signatures that
/// want to say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json<T>(
    /// The value.
    pub T,
);

impl<T: JsonSchema> JsonSchema for Json<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
