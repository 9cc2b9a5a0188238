//! From genai's stream to our events: genai moves the bytes, a [`WireReader`] says what they mean.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use ::genai::chat::{ChatFrameSink, ChatStream, FrameCtx, RawFrameRef};
use futures_util::{Stream, StreamExt};
use serde_json::Value;

use super::failure::Failures;
use crate::model::{ModelError, ModelEvent};

/// Reads one provider protocol.
pub(super) trait WireReader: Send {
    /// Reads the data of one server-sent event.
    fn read(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), WireError>;
}

/// Why a server-sent event could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("an event is not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("{0}")]
    OutOfOrder(String),
    #[error("the stream ends without a reason to stop")]
    EndsWithoutReason,
    /// The provider says that it failed.
    #[error("the provider reports an error")]
    Reported(Value),
}

/// The data of the server-sent events that genai has received and we have not read.
#[derive(Clone, Default)]
pub(super) struct Frames(Arc<Mutex<VecDeque<String>>>);

impl Frames {
    fn take(&self) -> VecDeque<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        if !frame.data.is_empty() {
            let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            frames.push_back(frame.data.to_owned());
        }
    }
}

/// The events of one turn, read off the wire.
pub(super) struct WireEvents {
    transport: ChatStream,
    frames: Frames,
    reader: Box<dyn WireReader>,
    failures: Failures,
    ready: VecDeque<Result<ModelEvent, ModelError>>,
    /// An event that is not JSON: the last one of a connection that broke, or a broken provider.
    broken: Option<serde_json::Error>,
    answered: bool,
    over: bool,
}

impl WireEvents {
    pub(super) fn new(
        transport: ChatStream,
        frames: Frames,
        reader: Box<dyn WireReader>,
        failures: Failures,
    ) -> Self {
        Self {
            transport,
            frames,
            reader,
            failures,
            ready: VecDeque::new(),
            broken: None,
            answered: false,
            over: false,
        }
    }

    fn read_frames(&mut self) {
        for data in self.frames.take() {
            if self.over {
                return;
            }
            self.answered = true;
            if let Some(error) = self.broken.take() {
                self.fail(self.failures.unreadable(WireError::NotJson(error)));
                return;
            }
            let mut events = Vec::new();
            let outcome = self.reader.read(&data, &mut events);
            for event in events {
                self.over |= matches!(event, ModelEvent::Ended { .. });
                self.ready.push_back(Ok(event));
            }
            match outcome {
                Ok(()) => {}
                // Judged when it is known whether anything follows.
                Err(WireError::NotJson(error)) => self.broken = Some(error),
                Err(error) => self.fail(self.failures.unreadable(error)),
            }
        }
    }

    fn fail(&mut self, error: ModelError) {
        self.over = true;
        self.ready.push_back(Err(error));
    }

    /// What genai made of the stream matters only where the transport failed: it reports every
    /// event that it could not read, and the reader has read them itself.
    fn judge(&mut self, error: ::genai::Error) {
        if !self.over && Failures::is_transport(&error) {
            self.fail(self.failures.of(error, self.answered));
        }
    }
}

impl Stream for WireEvents {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(item));
            }
            if self.over {
                return Poll::Ready(None);
            }
            let polled = self.transport.poll_next_unpin(cx);
            // Before anything else: the transport may have read whole events and still wait.
            self.read_frames();
            match polled {
                Poll::Ready(Some(Err(error))) => self.judge(error),
                Poll::Ready(None) if !self.over => {
                    let error = self.failures.truncated();
                    self.fail(error);
                }
                Poll::Pending if self.ready.is_empty() && !self.over => return Poll::Pending,
                Poll::Ready(_) | Poll::Pending => {}
            }
        }
    }
}
