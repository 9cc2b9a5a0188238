//! Whether a context is taken as `Arc<T>` or by value is decided by its type and not by how it is
//! spelled: of the methods below the compiler takes the one with the most references.

use std::{any::Any, marker::PhantomData, sync::Arc};

use super::super::{ContextType, ToolContext, ToolError};

/// Carries the type of the parameter.
pub struct ContextProbe<T>(PhantomData<fn() -> T>);

impl<T> ContextProbe<T> {
    /// A probe for `T`.
    #[expect(clippy::new_without_default, reason = "only expansions make one")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// A context that the tool shares.
pub trait SharedContext<T> {
    /// The type under which the application lends it.
    fn context_type(&self) -> ContextType;

    /// The context itself.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn fetch(&self, cx: &ToolContext) -> Result<Arc<T>, ToolError>;
}

impl<T: Any + Send + Sync> SharedContext<T> for &ContextProbe<Arc<T>> {
    fn context_type(&self) -> ContextType {
        ContextType::of::<T>()
    }

    fn fetch(&self, cx: &ToolContext) -> Result<Arc<T>, ToolError> {
        cx.context()
    }
}

/// A context that the tool gets a copy of.
pub trait ClonedContext<T> {
    /// The type under which the application lends it.
    fn context_type(&self) -> ContextType;

    /// A copy of the context.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn fetch(&self, cx: &ToolContext) -> Result<T, ToolError>
    where
        T: CloneableContext;
}

impl<T: 'static> ClonedContext<T> for ContextProbe<T> {
    fn context_type(&self) -> ContextType {
        ContextType::of::<T>()
    }

    fn fetch(&self, cx: &ToolContext) -> Result<T, ToolError>
    where
        T: CloneableContext,
    {
        cx.context::<T>().map(|context| T::clone(&context))
    }
}

/// A context that can be handed out by value.
#[diagnostic::on_unimplemented(
    message = "the context `{Self}` cannot be taken by value",
    label = "this context cannot be cloned and shared between threads",
    note = "borrow it, `#[ctx] x: &{Self}`, or take an `Arc<{Self}>`; a context taken by value \
            must be `Clone + Send + Sync + 'static`"
)]
pub trait CloneableContext: Any + Clone + Send + Sync {}

impl<T: Any + Clone + Send + Sync> CloneableContext for T {}
