//! Events of a run as chunks of a UI message stream.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    approval::{PendingCall, PendingKind},
    call::{CallId, CallState, Canonical, RunId},
    run::{FinishReason, RunEvent},
};

/// Turns what happens in a run into chunks: parts are closed before others begin, and every tool
/// that is told of was announced with its arguments.
pub(super) struct Chunks {
    run: RunId,
    open: Option<Open>,
    step_open: bool,
    /// How many texts were begun: their ids.
    texts: u64,
    /// Whether the last chunk was sent.
    finished: bool,
    /// The arguments with which each call was announced in this stream.
    announced: BTreeMap<CallId, Option<Canonical>>,
}

/// A part that more is added to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Reasoning,
}

impl Open {
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }
}

impl Chunks {
    pub(super) const fn of(run: RunId) -> Self {
        Self {
            run,
            open: None,
            step_open: false,
            texts: 0,
            finished: false,
            announced: BTreeMap::new(),
        }
    }

    /// The first chunk: the message is the run, whenever and wherever it is shown.
    pub(super) fn start(&self) -> Value {
        json!({ "type": "start", "messageId": self.run })
    }

    /// What is told of an event.
    pub(super) fn told(&mut self, event: &RunEvent) -> Vec<Value> {
        let mut chunks = Vec::new();
        match event {
            RunEvent::StepStarted { .. } => {
                self.end_step(&mut chunks);
                self.step_open = true;
                chunks.push(json!({ "type": "start-step" }));
            }
            RunEvent::TextDelta { text } => self.add(Open::Text, text, &mut chunks),
            RunEvent::ReasoningDelta { text } => self.add(Open::Reasoning, text, &mut chunks),
            RunEvent::ToolCall {
                call,
                tool,
                arguments,
            } => {
                self.close(&mut chunks);
                self.announce(call, tool, arguments.as_ref(), &mut chunks);
            }
            RunEvent::Pending(pending) => {
                self.close(&mut chunks);
                self.ask(pending, &mut chunks);
            }
            RunEvent::ToolEnded {
                call,
                tool,
                state,
                outcome,
            } => {
                self.close(&mut chunks);
                chunks.push(ended(call, tool, *state, outcome));
            }
            // What an agent below says is for the agent above; its calls are everyone's business.
            RunEvent::Delegated { event, .. } => match event.as_ref() {
                RunEvent::ToolCall { .. }
                | RunEvent::ToolEnded { .. }
                | RunEvent::Delegated { .. } => chunks = self.told(event),
                _ => {}
            },
            RunEvent::Suspended { .. } => {
                self.finish("tool-calls", &mut chunks);
            }
            RunEvent::Finished { reason, .. } => {
                let reason = match reason {
                    FinishReason::Answered => "stop",
                    FinishReason::TokenLimit => "length",
                    _ => "other",
                };
                self.finish(reason, &mut chunks);
            }
            RunEvent::Failed { error } => {
                self.end_step(&mut chunks);
                self.finished = true;
                chunks.push(json!({ "type": "error", "errorText": error }));
            }
            RunEvent::StepFinished { .. }
            | RunEvent::ToolInputStarted { .. }
            | RunEvent::ToolInputDelta { .. } => {}
        }
        chunks
    }

    /// The end of a stream, where no event was one.
    pub(super) fn end(&mut self) -> Vec<Value> {
        let mut chunks = Vec::new();
        if !self.finished {
            self.finish("tool-calls", &mut chunks);
        }
        chunks
    }

    fn finish(&mut self, reason: &str, chunks: &mut Vec<Value>) {
        self.end_step(chunks);
        self.finished = true;
        chunks.push(json!({ "type": "finish", "finishReason": reason }));
    }

    /// Puts a question again whose answer did not count, as it stands now.
    pub(super) fn ask_again(&mut self, pending: &PendingCall) -> Vec<Value> {
        let mut chunks = Vec::new();
        self.ask(pending, &mut chunks);
        chunks
    }

    fn announce(
        &mut self,
        call: &CallId,
        tool: &str,
        arguments: Option<&Canonical>,
        chunks: &mut Vec<Value>,
    ) {
        let input = arguments.and_then(|arguments| arguments.to_value().ok());
        chunks.push(json!({
            "type": "tool-input-available", "toolCallId": call, "toolName": tool,
            "input": input, "dynamic": true,
        }));
        self.announced.insert(call.clone(), arguments.cloned());
    }

    fn ask(&mut self, pending: &PendingCall, chunks: &mut Vec<Value>) {
        let arguments = Some(&pending.arguments);
        // Also where they were amended since the call was announced.
        if self.announced.get(&pending.call).map(Option::as_ref) != Some(arguments) {
            self.announce(&pending.call, &pending.tool, arguments, chunks);
        }
        chunks.push(about(pending));
        if pending.kind == PendingKind::Approval {
            chunks.push(json!({
                "type": "tool-approval-request", "toolCallId": pending.call,
                "approvalId": pending.fingerprint,
            }));
        }
    }

    fn add(&mut self, kind: Open, text: &str, chunks: &mut Vec<Value>) {
        if self.open != Some(kind) {
            self.close(chunks);
            self.texts += 1;
            self.open = Some(kind);
            chunks.push(json!({ "type": format!("{}-start", kind.name()), "id": self.id() }));
        }
        let kind = format!("{}-delta", kind.name());
        chunks.push(json!({ "type": kind, "id": self.id(), "delta": text }));
    }

    fn id(&self) -> String {
        format!("{}-{}", self.run, self.texts)
    }

    fn close(&mut self, chunks: &mut Vec<Value>) {
        if let Some(open) = self.open.take() {
            let kind = format!("{}-end", open.name());
            chunks.push(json!({ "type": kind, "id": self.id() }));
        }
    }

    fn end_step(&mut self, chunks: &mut Vec<Value>) {
        self.close(chunks);
        if std::mem::take(&mut self.step_open) {
            chunks.push(json!({ "type": "finish-step" }));
        }
    }
}

/// What waits for a person, for whoever draws it: what the protocol has no place for.
fn about(pending: &PendingCall) -> Value {
    json!({
        "type": "data-pending", "id": pending.call,
        "data": {
            "run": pending.run, "call": pending.call, "tool": pending.tool, "kind": pending.kind,
            "path": pending.path, "arguments_text": pending.arguments.as_str(),
            "fingerprint": pending.fingerprint, "fingerprint_short": pending.fingerprint.short(),
            "payload_text": pending.payload.as_ref().map(Canonical::as_str),
            "expires_at": pending.expires_at.to_string(),
        },
    })
}

/// What a tool returned: its outcome is JSON, unless a person settled it in words.
pub(super) fn output(outcome: &str) -> Value {
    serde_json::from_str(outcome).unwrap_or_else(|_| Value::String(outcome.to_owned()))
}

fn ended(call: &CallId, tool: &str, state: CallState, outcome: &str) -> Value {
    match state {
        CallState::Succeeded => json!({
            "type": "tool-output-available", "toolCallId": call, "output": output(outcome),
            "dynamic": true,
        }),
        CallState::Declined => json!({ "type": "tool-output-denied", "toolCallId": call }),
        _ => json!({
            "type": "tool-output-error", "toolCallId": call, "toolName": tool,
            "errorText": outcome, "dynamic": true,
        }),
    }
}
