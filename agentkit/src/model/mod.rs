//! Models behind one trait: what is asked ([`ModelRequest`]), what comes back ([`ModelEvent`]s),
//! and when it counts ([`TurnCollector`]).
//!
//! A turn counts as a whole or not at all. A stream that stops before its
//! [`ModelEvent::Ended`] is an error of kind [`ModelErrorKind::Truncated`]: no text and no tool
//! call of it is used, because half an argument list may well be valid JSON.
//!
//! Arguments of tool calls travel as the raw text that the model wrote. Nothing here parses,
//! repairs or replaces them; that is the gate's work, and a text that it cannot read goes back to
//! the model as an error of that call.
//!
//! - [`scripted`]: a model that plays a script, for tests and offline programs.
//! - `genai` (feature `genai`): the providers on the network.
//! - [`Retrying`]: repeats a request that failed before its first event.

mod error;
mod event;
#[cfg(feature = "genai")]
pub mod genai;
mod message;
mod name;
mod request;
mod retry;
pub mod scripted;
mod turn;

use std::{pin::Pin, sync::Arc};

use futures_util::Stream;

pub use error::{ModelError, ModelErrorKind};
pub use event::{ModelEvent, StopReason, Usage};
pub use message::{
    AssistantMessage, Message, ResultStatus, ToolCallPart, ToolMessage, ToolResultPart, UserMessage,
};
pub use name::{ModelName, ModelNameError};
pub use request::{ModelRequest, ToolOffer};
pub use retry::{RetryPolicy, Retrying};
pub use turn::{Turn, TurnCall, TurnCollector};

/// The events of one turn, in the order in which the model produced them.
///
/// The stream is over after the first error and after [`ModelEvent::Ended`].
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// Something that continues a conversation.
#[async_trait::async_trait]
pub trait ChatModel: Send + Sync {
    /// Which model answers, for journals and error texts.
    fn name(&self) -> &ModelName;

    /// Sends the request and returns the turn as it is produced.
    ///
    /// # Errors
    ///
    /// When the request could not be sent or was refused. An error that shows up later is an
    /// item of the stream.
    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError>;
}

#[async_trait::async_trait]
impl<M: ChatModel + ?Sized> ChatModel for Arc<M> {
    fn name(&self) -> &ModelName {
        (**self).name()
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        (**self).stream(request).await
    }
}

#[async_trait::async_trait]
impl<M: ChatModel + ?Sized> ChatModel for Box<M> {
    fn name(&self) -> &ModelName {
        (**self).name()
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        (**self).stream(request).await
    }
}
