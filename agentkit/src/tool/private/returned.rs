//! Which form a tool's result has (`Result`, `Flow`, both or neither) is decided by its type and
//! not by how it is spelled: of the methods below the compiler takes the one with the most
//! references.

use std::{error::Error, fmt::Display, marker::PhantomData};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    super::{Flow, ToolError, schema},
    Returned,
};

/// Carries the value that a tool's function returned.
pub struct ValueProbe<'a, T>(pub &'a T);

/// Picks the form `Result<Flow<T, S>, E>`.
pub trait ShapeOfFallibleFlow {
    /// The form, of a tool that is declared to suspend with `D`.
    fn shape<D>(&self) -> FallibleFlow<D> {
        FallibleFlow(PhantomData)
    }
}

/// Picks the form `Result<T, E>`.
pub trait ShapeOfFallible {
    /// The form, of a tool that is declared to suspend with `D`.
    fn shape<D>(&self) -> Fallible<D> {
        Fallible(PhantomData)
    }
}

/// Picks the form `Flow<T, S>`.
pub trait ShapeOfFlow {
    /// The form, of a tool that is declared to suspend with `D`.
    fn shape<D>(&self) -> Flowing<D> {
        Flowing(PhantomData)
    }
}

/// Picks the form of everything else.
pub trait ShapeOfPlain {
    /// The form, of a tool that is declared to suspend with `D`.
    fn shape<D>(&self) -> Plain<D> {
        Plain(PhantomData)
    }
}

impl<T, S, E> ShapeOfFallibleFlow for &&&ValueProbe<'_, Result<Flow<T, S>, E>> {}
impl<T, E> ShapeOfFallible for &&ValueProbe<'_, Result<T, E>> {}
impl<T, S> ShapeOfFlow for &ValueProbe<'_, Flow<T, S>> {}
impl<T> ShapeOfPlain for ValueProbe<'_, T> {}

/// `Result<Flow<T, S>, E>`.
pub struct FallibleFlow<D>(PhantomData<fn() -> D>);

/// `Result<T, E>`.
pub struct Fallible<D>(PhantomData<fn() -> D>);

/// `Flow<T, S>`.
pub struct Flowing<D>(PhantomData<fn() -> D>);

/// Anything else.
pub struct Plain<D>(PhantomData<fn() -> D>);

impl<D> FallibleFlow<D> {
    /// Makes the run machine's form of it.
    ///
    /// # Errors
    ///
    /// Those of the tool, and results that cannot be put as JSON.
    pub fn settle<T, S, E, F>(self, value: Result<Flow<T, S>, E>, failure: F) -> Returned<D>
    where
        T: ToolOutput,
        S: SuspendsWith<D>,
        F: Converts<E>,
    {
        match value {
            Ok(flow) => Flowing::<D>(PhantomData).settle(flow, failure),
            Err(error) => Err(failure.convert(error)),
        }
    }
}

impl<D> Fallible<D> {
    /// Makes the run machine's form of it.
    ///
    /// # Errors
    ///
    /// Those of the tool, and results that cannot be put as JSON.
    pub fn settle<T, E, F>(self, value: Result<T, E>, failure: F) -> Returned<D>
    where
        T: ToolOutput,
        F: Converts<E>,
    {
        match value {
            Ok(value) => json(&value).map(Flow::Done),
            Err(error) => Err(failure.convert(error)),
        }
    }
}

impl<D> Flowing<D> {
    /// Makes the run machine's form of it.
    ///
    /// # Errors
    ///
    /// When the result cannot be put as JSON.
    pub fn settle<T, S, F>(self, value: Flow<T, S>, _: F) -> Returned<D>
    where
        T: ToolOutput,
        S: SuspendsWith<D>,
    {
        match value {
            Flow::Done(value) => json(&value).map(Flow::Done),
            Flow::Suspend(question) => Ok(Flow::Suspend(question.same())),
        }
    }
}

impl<D> Plain<D> {
    /// Makes the run machine's form of it.
    ///
    /// # Errors
    ///
    /// When the result cannot be put as JSON.
    #[allow(clippy::needless_pass_by_value, reason = "all forms are called alike")]
    pub fn settle<T: ToolOutput, F>(self, value: T, _: F) -> Returned<D> {
        json(&value).map(Flow::Done)
    }
}

fn json<T: Serialize>(value: &T) -> Result<Value, ToolError> {
    serde_json::to_value(value).map_err(|error| {
        ToolError::with_source("the result of the tool cannot be put as JSON", error)
    })
}

/// What a tool can give back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "this result cannot be shown to a model",
    note = "a result needs `#[derive(serde::Serialize)]`; a tool may return `T`, `Result<T, E>`, \
            `Flow<T, S>` or `Result<Flow<T, S>, E>`"
)]
pub trait ToolOutput: Serialize {}

impl<T: Serialize> ToolOutput for T {}

/// What a tool can suspend with, if it declares that it suspends with `D`.
#[diagnostic::on_unimplemented(
    message = "the function suspends with `{Self}`, but the tool is declared to suspend with `{D}`",
    label = "suspends with `{Self}`",
    note = "write `#[tool(suspend = {Self}, resume = Answer)]`"
)]
pub trait SuspendsWith<D> {
    /// The value as it is.
    fn same(self) -> D;
}

impl<D> SuspendsWith<D> for D {
    fn same(self) -> D {
        self
    }
}

/// Picks errors that keep their source.
pub trait FailureOfError {
    /// The conversion.
    fn failure(&self) -> Boxed {
        Boxed
    }
}

/// Picks errors that have a text only.
pub trait FailureOfText {
    /// The conversion.
    fn failure(&self) -> Displayed {
        Displayed
    }
}

/// Picks everything else: results that cannot fail, and errors that say nothing.
pub trait FailureOfNothing {
    /// The conversion.
    fn failure(&self) -> Unconvertible {
        Unconvertible
    }
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> FailureOfError for &&ValueProbe<'_, Result<T, E>> {}
impl<T, E: Display> FailureOfText for &ValueProbe<'_, Result<T, E>> {}
impl<T> FailureOfNothing for ValueProbe<'_, T> {}

/// Converts errors that keep their source.
pub struct Boxed;

/// Converts errors that have a text only.
pub struct Displayed;

/// Converts nothing.
pub struct Unconvertible;

/// Can make a [`ToolError`] of an `E`.
#[diagnostic::on_unimplemented(
    message = "`{E}` cannot be the error of a tool",
    label = "this error has no text for the model",
    note = "an error needs `std::fmt::Display`, better `std::error::Error`; `ToolError` and \
            `anyhow::Error` will do"
)]
pub trait Converts<E> {
    /// The conversion.
    fn convert(self, error: E) -> ToolError;
}

impl<E: Into<Box<dyn Error + Send + Sync>>> Converts<E> for Boxed {
    fn convert(self, error: E) -> ToolError {
        ToolError::from_error(error)
    }
}

impl<E: Display> Converts<E> for Displayed {
    fn convert(self, error: E) -> ToolError {
        ToolError::new(error.to_string())
    }
}

/// Carries the type that a tool's function returns.
pub struct TypeProbe<T>(PhantomData<fn() -> T>);

impl<T> TypeProbe<T> {
    /// A probe for `T`.
    #[expect(clippy::new_without_default, reason = "only expansions make one")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// The schema of the `T` in `Result<Flow<T, S>, E>`.
pub trait SchemaOfFallibleFlow {
    /// The schema.
    fn output_schema(&self) -> Option<Value>;
}

/// The schema of the `T` in `Result<T, E>`.
pub trait SchemaOfFallible {
    /// The schema.
    fn output_schema(&self) -> Option<Value>;
}

/// The schema of the `T` in `Flow<T, S>`.
pub trait SchemaOfFlow {
    /// The schema.
    fn output_schema(&self) -> Option<Value>;
}

/// The schema of anything else that has one.
pub trait SchemaOfPlain {
    /// The schema.
    fn output_schema(&self) -> Option<Value>;
}

/// No schema.
pub trait SchemaOfNothing {
    /// None.
    fn output_schema(&self) -> Option<Value> {
        None
    }
}

impl<T: JsonSchema, S, E> SchemaOfFallibleFlow for &&&&TypeProbe<Result<Flow<T, S>, E>> {
    fn output_schema(&self) -> Option<Value> {
        Some(schema::produced::<T>())
    }
}

impl<T: JsonSchema, E> SchemaOfFallible for &&&TypeProbe<Result<T, E>> {
    fn output_schema(&self) -> Option<Value> {
        Some(schema::produced::<T>())
    }
}

impl<T: JsonSchema, S> SchemaOfFlow for &&TypeProbe<Flow<T, S>> {
    fn output_schema(&self) -> Option<Value> {
        Some(schema::produced::<T>())
    }
}

impl<T: JsonSchema> SchemaOfPlain for &TypeProbe<T> {
    fn output_schema(&self) -> Option<Value> {
        Some(schema::produced::<T>())
    }
}

impl<T> SchemaOfNothing for TypeProbe<T> {}
