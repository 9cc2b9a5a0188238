use std::{
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Tool, schema};
use crate::call::Canonical;

type Derivation = dyn Fn(&Canonical) -> Result<Value, Box<dyn Error + Send + Sync>> + Send + Sync;

/// Something that follows from a call's arguments and that policies may refer to:
/// `#[tool(facts(total_cents = |args| …))]`.
///
/// Policies cannot sum or search lists; what they need of them is derived here, with a type, and
/// is shown in the audit.
#[derive(Clone)]
pub struct Fact {
    name: String,
    schema: Value,
    derivation: Arc<Derivation>,
}

/// Why a fact is not known.
#[derive(Debug, thiserror::Error)]
#[error("the fact `{fact}` of `{tool}` could not be derived from the arguments")]
pub struct FactError {
    tool: String,
    fact: String,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

impl Fact {
    /// A fact over the typed arguments of the tool `T`.
    pub fn typed<T, F, V>(name: impl Into<String>, derivation: F) -> Self
    where
        T: Tool,
        F: Fn(&T::Args) -> V + Send + Sync + 'static,
        V: Serialize + JsonSchema,
    {
        Self {
            name: name.into(),
            schema: schema::produced::<V>(),
            derivation: Arc::new(move |arguments| {
                let args = arguments.decode::<T::Args>()?;
                Ok(Canonical::of(&derivation(&args))?.to_value()?)
            }),
        }
    }

    /// The name by which policies refer to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// JSON Schema of its values.
    pub const fn schema(&self) -> &Value {
        &self.schema
    }

    /// Its value for a call with these effective arguments.
    ///
    /// # Errors
    ///
    /// When it cannot be derived, or its derivation panics. Such a call must not run, since the
    /// policy cannot see what it should.
    pub fn derive(&self, tool: &str, arguments: &Canonical) -> Result<Value, FactError> {
        catch_unwind(AssertUnwindSafe(|| (self.derivation)(arguments)))
            .unwrap_or_else(|_| Err("its derivation panicked".into()))
            .map_err(|source| FactError {
                tool: tool.to_owned(),
                fact: self.name.clone(),
                source,
            })
    }
}

impl fmt::Debug for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fact")
            .field("name", &self.name)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}
