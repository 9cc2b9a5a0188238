//! What the expansions of `#[tool]` and `#[agent]` refer to. Not covered by any promise of
//! stability.

pub use schemars;
pub use serde;
pub use serde_json;

use schemars::JsonSchema;
use serde_json::Value;

use super::schema;

/// The schema of what a model may send.
pub fn input_schema<T: JsonSchema>() -> Value {
    schema::arguments(schema::accepted::<T>())
}

/// The schema of the arguments once they are serialised again.
pub fn policy_schema<T: JsonSchema>() -> Value {
    schema::arguments(schema::produced::<T>())
}
