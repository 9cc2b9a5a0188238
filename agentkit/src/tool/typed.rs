use std::{future::Future, marker::PhantomData, sync::Arc};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    ArgumentError, Flow, ToolContext, ToolError, ToolSpec, against_schema::Checks, settle,
};
use crate::call::Canonical;

/// A tool with typed arguments. `#[tool]` implements it for a type that has the name of the
/// function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on the function of that name, and import it with its module: a tool is \
            the type that `#[tool]` makes beside the function"
)]
pub trait Tool: Sized + Send + Sync + 'static {
    /// The name by which models call it.
    const NAME: &'static str;

    /// The arguments that a model sends: a struct with a field an argument.
    type Args: Serialize + DeserializeOwned + JsonSchema + Send + 'static;

    /// What the function returns; [`Value`] where the return type cannot be named.
    type Output;

    /// What the tool shows when it asks a question; [`Never`](super::Never) if it asks none.
    type Suspend: Serialize + DeserializeOwned + JsonSchema + Send + 'static;

    /// What its question is answered with; [`Never`](super::Never) if it asks none.
    type Resume: Serialize + DeserializeOwned + JsonSchema + Send + 'static;

    /// What is known of the tool without calling it.
    fn spec() -> ToolSpec;

    /// Calls the tool.
    fn run(
        args: Self::Args,
        cx: ToolContext,
    ) -> impl Future<Output = Result<Flow<Value, Self::Suspend>, ToolError>> + Send;
}

/// A tool as the run machine sees it: JSON in, JSON out.
///
/// [`settle`](Self::settle) is the only way from a model's text to arguments, and
/// [`run`](Self::run) takes nothing but settled arguments.
pub trait DynTool: Send + Sync {
    /// What is known of the tool without calling it.
    fn spec(&self) -> &ToolSpec;

    /// Turns the JSON text that a model wrote into the effective arguments: decodes it strictly
    /// into the tool's type and serialises that again.
    ///
    /// # Errors
    ///
    /// When the text is not JSON or does not fit the type, has keys that the type does not know
    /// (at any depth) or the same key twice, or when the type does not survive a round trip
    /// through JSON. The text is fit for a model.
    fn settle(&self, raw: &str) -> Result<Canonical, ArgumentError>;

    /// Checks the answer to a question of this tool and brings it into canonical form.
    ///
    /// # Errors
    ///
    /// When the answer does not fit, or the tool asks no questions.
    fn check_answer(&self, raw: &Value) -> Result<Canonical, ArgumentError>;

    /// Calls the tool with settled arguments.
    fn run(
        &self,
        args: &Canonical,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<Flow<Canonical, Canonical>, ToolError>>;
}

/// A [`Tool`] as a [`DynTool`].
pub struct Typed<T> {
    spec: ToolSpec,
    checks: Checks,
    tool: PhantomData<fn() -> T>,
}

impl<T: Tool> Typed<T> {
    /// Makes the specification of `T` and holds on to it.
    pub fn new() -> Self {
        Self {
            spec: T::spec(),
            checks: Checks::default(),
            tool: PhantomData,
        }
    }
}

impl<T: Tool> Default for Typed<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The tool `T` behind a pointer, as agents and [sets](super::ToolSet) hold it.
pub fn erase<T: Tool>() -> Arc<dyn DynTool> {
    Arc::new(Typed::<T>::new())
}

impl<T: Tool> DynTool for Typed<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn settle(&self, raw: &str) -> Result<Canonical, ArgumentError> {
        settle::checked_arguments::<T::Args>(raw, &self.spec, &self.checks)
    }

    fn check_answer(&self, raw: &Value) -> Result<Canonical, ArgumentError> {
        settle::checked_answer::<T::Resume>(raw, &self.spec, &self.checks)
    }

    fn run(
        &self,
        args: &Canonical,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<Flow<Canonical, Canonical>, ToolError>> {
        let decoded = args.decode::<T::Args>();
        Box::pin(async move {
            let args = decoded.map_err(|error| {
                ToolError::with_source("the recorded arguments do not fit the tool any more", error)
            })?;
            let canonical = match T::run(args, cx).await? {
                Flow::Done(value) => Canonical::of(&value).map(Flow::Done),
                Flow::Suspend(question) => Canonical::of(&question).map(Flow::Suspend),
            };
            canonical.map_err(|error| {
                ToolError::with_source("what the tool came back with cannot be put as JSON", error)
            })
        })
    }
}
