use serde::Serialize;

use crate::model::{ModelError, ModelErrorKind, ModelEvent, StopReason, Usage};

/// One turn of a script: what the model says and calls, and how it fails.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Reply {
    reasoning: String,
    text: String,
    calls: Vec<ScriptedCall>,
    interleaved: bool,
    usage: Usage,
    stop: Option<StopReason>,
    failure: Option<Failure>,
}

#[derive(Clone, Debug)]
struct ScriptedCall {
    provider_id: Option<String>,
    tool: String,
    /// An error when the arguments could not be serialised; told when the reply is played, so
    /// that scripts read as a chain.
    arguments: Result<String, String>,
}

#[derive(Clone, Debug)]
enum Failure {
    AtOnce(ModelError),
    After(usize, ModelError),
    EarlyEnd(usize),
}

impl Reply {
    /// A turn that says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A turn without text, to be followed by calls.
    pub fn calls() -> Self {
        Self::default()
    }

    /// A request that fails before the first event.
    pub fn fails(error: ModelError) -> Self {
        Self {
            failure: Some(Failure::AtOnce(error)),
            ..Self::default()
        }
    }

    /// Calls a tool with these arguments.
    pub fn call(self, tool: impl Into<String>, arguments: &(impl Serialize + ?Sized)) -> Self {
        let arguments = serde_json::to_string(arguments).map_err(|error| error.to_string());
        self.with_call(tool.into(), arguments)
    }

    /// Calls a tool with this text as arguments, JSON or not.
    pub fn call_raw(self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.with_call(tool.into(), Ok(arguments.into()))
    }

    /// Gives the last call this provider's id; ids are numbered (`scripted-1`) unless set.
    pub fn with_provider_id(mut self, id: impl Into<String>) -> Self {
        if let Some(call) = self.calls.last_mut() {
            call.provider_id = Some(id.into());
        }
        self
    }

    /// Reasons before it speaks.
    pub fn reasoning(mut self, text: impl Into<String>) -> Self {
        self.reasoning = text.into();
        self
    }

    /// Sends the pieces of all calls' arguments in turns, as some providers do.
    pub fn interleaved(mut self) -> Self {
        self.interleaved = true;
        self
    }

    /// Reports this usage.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Ends for this reason; otherwise for its calls, or because all is said.
    pub fn stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Breaks with this error after so many events.
    pub fn breaks_after(mut self, events: usize, error: ModelError) -> Self {
        self.failure = Some(Failure::After(events, error));
        self
    }

    /// Closes the stream after so many events, without an end event.
    pub fn ends_early_after(mut self, events: usize) -> Self {
        self.failure = Some(Failure::EarlyEnd(events));
        self
    }

    fn with_call(mut self, tool: String, arguments: Result<String, String>) -> Self {
        self.calls.push(ScriptedCall {
            provider_id: None,
            tool,
            arguments,
        });
        self
    }

    pub(super) fn call_count(&self) -> u64 {
        self.calls.len() as u64
    }

    /// The items of the stream.
    ///
    /// # Errors
    ///
    /// What [`Reply::fails`] was given, or that a call's arguments could not be serialised.
    pub(super) fn play(
        self,
        piece: usize,
        first_call: u64,
    ) -> Result<Vec<Result<ModelEvent, ModelError>>, ModelError> {
        if let Some(Failure::AtOnce(error)) = self.failure {
            return Err(error);
        }
        let stop = self.stop.unwrap_or(if self.calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolCalls
        });
        let mut events = Vec::new();
        events
            .extend(pieces(&self.reasoning, piece).map(|text| ModelEvent::ReasoningDelta { text }));
        events.extend(pieces(&self.text, piece).map(|text| ModelEvent::TextDelta { text }));
        events.extend(call_events(
            self.calls,
            self.interleaved,
            piece,
            first_call,
        )?);
        events.push(ModelEvent::Usage(self.usage));
        events.push(ModelEvent::Ended { stop });

        let mut items: Vec<_> = events.into_iter().map(Ok).collect();
        match self.failure {
            Some(Failure::After(count, error)) => {
                items.truncate(count);
                items.push(Err(error));
            }
            // The end event is what makes a turn whole, so an early end never has it.
            Some(Failure::EarlyEnd(count)) => items.truncate(count.min(items.len() - 1)),
            Some(Failure::AtOnce(_)) | None => {}
        }
        Ok(items)
    }
}

fn call_events(
    calls: Vec<ScriptedCall>,
    interleaved: bool,
    piece: usize,
    first_call: u64,
) -> Result<Vec<ModelEvent>, ModelError> {
    let mut streams = Vec::new();
    for ((call, index), number) in calls.into_iter().zip(0_u32..).zip(first_call..) {
        let arguments = call.arguments.map_err(|error| {
            ModelError::new(
                ModelErrorKind::InvalidRequest,
                format!(
                    "the script's arguments for `{}` cannot be written as JSON: {error}",
                    call.tool
                ),
            )
        })?;
        let provider_id = call
            .provider_id
            .unwrap_or_else(|| format!("scripted-{number}"));
        let mut events = vec![ModelEvent::ToolCallStarted {
            index,
            provider_id,
            tool: call.tool,
        }];
        events.extend(
            pieces(&arguments, piece).map(|json| ModelEvent::ToolCallDelta { index, json }),
        );
        events.push(ModelEvent::ToolCallFinished { index });
        streams.push(events.into_iter());
    }
    if !interleaved {
        return Ok(streams.into_iter().flatten().collect());
    }
    let mut events = Vec::new();
    loop {
        let before = events.len();
        events.extend(streams.iter_mut().filter_map(Iterator::next));
        if events.len() == before {
            return Ok(events);
        }
    }
}

/// The text in pieces of so many characters.
fn pieces(text: &str, size: usize) -> impl Iterator<Item = String> {
    let mut characters = text.chars().peekable();
    std::iter::from_fn(move || {
        characters.peek()?;
        Some(characters.by_ref().take(size).collect())
    })
}
