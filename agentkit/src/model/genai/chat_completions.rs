//! Chat completions: the protocol of `OpenAI` and of the many that speak like it.

use serde_json::{Value, json};

use super::{
    conversation::{Conversation, Entry, past_arguments},
    events::{WireError, WireReader},
};
use crate::model::{AssistantMessage, ModelEvent, StopReason, Usage};

/// The request's messages.
pub(super) fn messages(instructions: Option<&str>, turns: &Conversation<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    if let Some(instructions) = instructions {
        messages.push(json!({"role": "system", "content": instructions}));
    }
    for entry in &turns.entries {
        match entry {
            Entry::User(text) => messages.push(json!({"role": "user", "content": text})),
            Entry::Assistant(assistant) => messages.push(assistant_message(turns, assistant)),
            Entry::Results(results) => messages.extend(results.iter().map(|result| {
                json!({
                    "role": "tool",
                    "tool_call_id": turns.id(&result.call, &result.provider_id, fits),
                    "content": result.content,
                })
            })),
        }
    }
    messages
}

fn assistant_message(turns: &Conversation<'_>, assistant: &AssistantMessage) -> Value {
    if assistant.tool_calls.is_empty() {
        return json!({"role": "assistant", "content": assistant.text});
    }
    let calls: Vec<Value> = assistant
        .tool_calls
        .iter()
        .map(|call| {
            json!({
                "id": turns.id(&call.call, &call.provider_id, fits),
                "type": "function",
                "function": {"name": call.tool, "arguments": past_text(&call.arguments)},
            })
        })
        .collect();
    json!({"role": "assistant", "content": assistant.text, "tool_calls": calls})
}

/// The very text that the model wrote, if a provider takes it back.
fn past_text(raw: &str) -> String {
    if serde_json::from_str::<serde_json::Map<String, Value>>(raw).is_ok() {
        raw.to_owned()
    } else {
        Value::from(past_arguments(raw)).to_string()
    }
}

fn fits(id: &str) -> bool {
    !id.is_empty()
}

/// Reads a stream of chat completion chunks.
#[derive(Default)]
pub(super) struct ChatCompletionsReader {
    calls: Vec<OpenCall>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
}

struct OpenCall {
    /// The provider's index, which some give to several calls.
    wire_index: u64,
    provider_id: String,
    tool: String,
    /// Arguments that came before the tool's name.
    held: String,
    started: bool,
    finished: bool,
}

impl WireReader for ChatCompletionsReader {
    fn read(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        if data == "[DONE]" {
            return self.end(events);
        }
        let chunk: Value = serde_json::from_str(data).map_err(WireError::NotJson)?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(WireError::Reported(error.clone()));
        }
        self.read_usage(&chunk);
        let choice = chunk
            .get("choices")
            .and_then(Value::as_array)
            .and_then(|choices| {
                choices
                    .iter()
                    .find(|choice| index(choice).unwrap_or(0) == 0)
            });
        let Some(choice) = choice else {
            return Ok(());
        };
        if let Some(delta) = choice.get("delta") {
            self.read_delta(delta, events);
        }
        match choice.get("finish_reason").and_then(Value::as_str) {
            Some("error") => Err(WireError::Reported(choice.clone())),
            Some(reason) => {
                self.finish(reason, events);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl ChatCompletionsReader {
    fn read_delta(&mut self, delta: &Value, events: &mut Vec<ModelEvent>) {
        for name in ["reasoning_content", "reasoning"] {
            if let Some(text) = delta
                .get(name)
                .and_then(Value::as_str)
                .filter(|t| !t.is_empty())
            {
                events.push(ModelEvent::ReasoningDelta {
                    text: text.to_owned(),
                });
                break;
            }
        }
        match delta.get("content") {
            Some(Value::String(text)) => push_text(text, events),
            // Mistral's reasoning models send typed chunks.
            Some(Value::Array(chunks)) => read_chunks(chunks, events),
            _ => {}
        }
        if let Some(text) = delta.get("refusal").and_then(Value::as_str) {
            push_text(text, events);
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.read_call(call, events);
        }
    }

    fn read_call(&mut self, call: &Value, events: &mut Vec<ModelEvent>) {
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = call.get("function");
        let part = |name| function.and_then(|function| function.get(name));
        let tool = part("name").and_then(Value::as_str).unwrap_or_default();
        let position = self.position(index(call), id, tool, events);
        let Some(open) = self.calls.get_mut(position) else {
            return;
        };
        match part("arguments") {
            Some(Value::String(json)) => open.held.push_str(json),
            Some(Value::Null) | None => {}
            // Some send the object itself.
            Some(value) => open.held.push_str(&value.to_string()),
        }
        if open.tool.is_empty() {
            tool.clone_into(&mut open.tool);
        }
        if !open.tool.is_empty() {
            open.flush(position, events);
        }
    }

    /// Which call a piece belongs to.
    fn position(
        &mut self,
        wire_index: Option<u64>,
        id: &str,
        tool: &str,
        events: &mut Vec<ModelEvent>,
    ) -> usize {
        let last = self.calls.len().saturating_sub(1);
        let found = match wire_index {
            Some(wire) => self.calls.iter().rposition(|open| open.wire_index == wire),
            None if id.is_empty() => (!self.calls.is_empty()).then_some(last),
            None => self.calls.iter().position(|open| open.provider_id == id),
        };
        if let Some(position) = found
            && let Some(open) = self.calls.get_mut(position)
        {
            // Another id and a name under the same index: the next call of a provider that
            // counts all of them as 0.
            let another = !id.is_empty() && !tool.is_empty() && open.provider_id != id;
            if !another {
                return position;
            }
            open.finish(position, events);
        }
        self.calls.push(OpenCall {
            wire_index: wire_index.unwrap_or(self.calls.len() as u64),
            provider_id: id.to_owned(),
            tool: String::new(),
            held: String::new(),
            started: false,
            finished: false,
        });
        self.calls.len() - 1
    }

    fn finish(&mut self, reason: &str, events: &mut Vec<ModelEvent>) {
        for (position, open) in self.calls.iter_mut().enumerate() {
            open.finish(position, events);
        }
        self.stop = Some(match reason {
            "stop" | "tool_calls" | "function_call" if !self.calls.is_empty() => {
                StopReason::ToolCalls
            }
            "stop" | "tool_calls" | "function_call" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refused,
            other => StopReason::Other(other.to_owned()),
        });
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        // Proxies write the end marker even when what is behind them broke off.
        let stop = self.stop.take().ok_or(WireError::EndsWithoutReason)?;
        if let Some(usage) = self.usage {
            events.push(ModelEvent::Usage(usage));
        }
        events.push(ModelEvent::Ended { stop });
        Ok(())
    }

    fn read_usage(&mut self, chunk: &Value) {
        // Groq has a place of its own for it.
        let usage = chunk
            .get("usage")
            .or_else(|| chunk.pointer("/x_groq/usage"));
        let Some(usage) = usage.filter(|usage| usage.is_object()) else {
            return;
        };
        let count = |pointer| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        self.usage = Some(Usage {
            input_tokens: count("/prompt_tokens"),
            cached_input_tokens: count("/prompt_tokens_details/cached_tokens"),
            output_tokens: count("/completion_tokens"),
            reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
        });
    }
}

impl OpenCall {
    fn flush(&mut self, position: usize, events: &mut Vec<ModelEvent>) {
        let index = u32::try_from(position).unwrap_or(u32::MAX);
        if !self.started {
            self.started = true;
            events.push(ModelEvent::ToolCallStarted {
                index,
                provider_id: self.provider_id.clone(),
                tool: self.tool.clone(),
            });
        }
        if !self.held.is_empty() {
            let json = std::mem::take(&mut self.held);
            events.push(ModelEvent::ToolCallDelta { index, json });
        }
    }

    fn finish(&mut self, position: usize, events: &mut Vec<ModelEvent>) {
        if !self.finished {
            self.finished = true;
            self.flush(position, events);
            let index = u32::try_from(position).unwrap_or(u32::MAX);
            events.push(ModelEvent::ToolCallFinished { index });
        }
    }
}

fn index(value: &Value) -> Option<u64> {
    value.get("index").and_then(Value::as_u64)
}

fn push_text(text: &str, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        events.push(ModelEvent::TextDelta {
            text: text.to_owned(),
        });
    }
}

fn read_chunks(chunks: &[Value], events: &mut Vec<ModelEvent>) {
    for chunk in chunks {
        if let Some(text) = chunk.get("text").and_then(Value::as_str) {
            push_text(text, events);
        }
        let thoughts = chunk.get("thinking").and_then(Value::as_array);
        for thought in thoughts.into_iter().flatten() {
            if let Some(text) = thought.get("text").and_then(Value::as_str) {
                events.push(ModelEvent::ReasoningDelta {
                    text: text.to_owned(),
                });
            }
        }
    }
}
