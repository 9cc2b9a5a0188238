//! Messages: the protocol of Anthropic.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    conversation::{Conversation, Entry, past_arguments},
    events::{WireError, WireReader},
};
use crate::model::{ModelEvent, StopReason, Usage};

/// The request's messages. The instructions are a field of their own in this protocol.
pub(super) fn messages(turns: &Conversation<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    for entry in &turns.entries {
        match entry {
            Entry::User(text) => messages.push(json!({"role": "user", "content": text})),
            Entry::Assistant(assistant) => {
                let mut content = Vec::new();
                // Blank text blocks are refused.
                if !assistant.text.trim().is_empty() {
                    content.push(json!({"type": "text", "text": assistant.text}));
                }
                content.extend(assistant.tool_calls.iter().map(|call| {
                    json!({
                        "type": "tool_use",
                        "id": turns.id(&call.call, &call.provider_id, fits),
                        "name": call.tool,
                        "input": past_arguments(&call.arguments),
                    })
                }));
                if !content.is_empty() {
                    messages.push(json!({"role": "assistant", "content": content}));
                }
            }
            Entry::Results(results) => {
                let content: Vec<Value> = results
                    .iter()
                    .map(|result| {
                        json!({
                            "type": "tool_result",
                            "tool_use_id": turns.id(&result.call, &result.provider_id, fits),
                            "content": result.content,
                            "is_error": !result.status.is_success(),
                        })
                    })
                    .collect();
                messages.push(json!({"role": "user", "content": content}));
            }
        }
    }
    messages
}

/// Ids of other providers need not follow this provider's pattern.
fn fits(id: &str) -> bool {
    !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Reads a stream of message events.
#[derive(Default)]
pub(super) struct MessagesReader {
    blocks: BTreeMap<u64, Block>,
    calls: u32,
    usage: Usage,
    stop: Option<StopReason>,
}

enum Block {
    Call {
        index: u32,
        /// The input that stood in the block's start; it counts when no piece follows.
        input: Option<Value>,
    },
    /// Text, thinking, and what is not known here.
    Other,
}

impl WireReader for MessagesReader {
    fn read(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        let message: Value = serde_json::from_str(data).map_err(WireError::NotJson)?;
        match message.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                self.read_usage(message.pointer("/message/usage"));
                Ok(())
            }
            Some("content_block_start") => self.start(&message, events),
            Some("content_block_delta") => self.delta(&message, events),
            Some("content_block_stop") => self.stop(block_index(&message)?, events),
            Some("message_delta") => {
                self.read_usage(message.get("usage"));
                if let Some(reason) = message
                    .pointer("/delta/stop_reason")
                    .and_then(Value::as_str)
                {
                    self.stop = Some(stop_reason(reason));
                }
                Ok(())
            }
            Some("message_stop") => self.end(events),
            Some("error") => Err(WireError::Reported(
                message.get("error").cloned().unwrap_or(message),
            )),
            // `ping`, and what later versions of the protocol may add.
            _ => Ok(()),
        }
    }
}

impl MessagesReader {
    fn start(&mut self, message: &Value, events: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        let number = block_index(message)?;
        let block = message.get("content_block").unwrap_or(&Value::Null);
        let text = |name| {
            block
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let kept = match text("type").as_str() {
            "tool_use" => {
                let index = self.calls;
                self.calls += 1;
                events.push(ModelEvent::ToolCallStarted {
                    index,
                    provider_id: text("id"),
                    tool: text("name"),
                });
                Block::Call {
                    index,
                    input: block.get("input").cloned(),
                }
            }
            "text" if !text("text").is_empty() => {
                events.push(ModelEvent::TextDelta { text: text("text") });
                Block::Other
            }
            "thinking" if !text("thinking").is_empty() => {
                events.push(ModelEvent::ReasoningDelta {
                    text: text("thinking"),
                });
                Block::Other
            }
            _ => Block::Other,
        };
        match self.blocks.insert(number, kept) {
            None => Ok(()),
            Some(_) => Err(WireError::OutOfOrder(format!(
                "content block {number} starts twice"
            ))),
        }
    }

    fn delta(&mut self, message: &Value, events: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        let number = block_index(message)?;
        let block = self.blocks.get_mut(&number).ok_or_else(|| {
            WireError::OutOfOrder(format!("content block {number} goes on without being open"))
        })?;
        let delta = message.get("delta").unwrap_or(&Value::Null);
        let text = |name| {
            delta
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match (text("type").as_str(), block) {
            ("text_delta", Block::Other) => {
                events.push(ModelEvent::TextDelta { text: text("text") });
            }
            ("thinking_delta", Block::Other) => {
                events.push(ModelEvent::ReasoningDelta {
                    text: text("thinking"),
                });
            }
            ("input_json_delta", Block::Call { index, input }) => {
                let json = text("partial_json");
                // The first piece is often empty, and says nothing about the input.
                if !json.is_empty() {
                    *input = None;
                    events.push(ModelEvent::ToolCallDelta {
                        index: *index,
                        json,
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn stop(&mut self, number: u64, events: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        match self.blocks.remove(&number) {
            Some(Block::Call { index, input }) => {
                if let Some(input) = input {
                    let json = input.to_string();
                    events.push(ModelEvent::ToolCallDelta { index, json });
                }
                events.push(ModelEvent::ToolCallFinished { index });
                Ok(())
            }
            Some(Block::Other) => Ok(()),
            None => Err(WireError::OutOfOrder(format!(
                "content block {number} stops without being open"
            ))),
        }
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        let stop = self.stop.take().ok_or(WireError::EndsWithoutReason)?;
        for block in std::mem::take(&mut self.blocks).into_values() {
            let Block::Call { index, .. } = block else {
                continue;
            };
            // At the limit of tokens a call stays as it is, cut off; the gate refuses it.
            if stop != StopReason::MaxTokens {
                return Err(WireError::OutOfOrder(
                    "the message stops within a call".to_owned(),
                ));
            }
            events.push(ModelEvent::ToolCallFinished { index });
        }
        events.push(ModelEvent::Usage(self.usage));
        events.push(ModelEvent::Ended { stop });
        Ok(())
    }

    fn read_usage(&mut self, usage: Option<&Value>) {
        let count = |name| {
            usage
                .and_then(|usage| usage.get(name))
                .and_then(Value::as_u64)
        };
        // What was read from the cache and written to it is not part of `input_tokens`. Later
        // reports may leave out what the first one told.
        if let Some(input) = count("input_tokens") {
            let cached = count("cache_read_input_tokens").unwrap_or(0);
            let written = count("cache_creation_input_tokens").unwrap_or(0);
            self.usage.cached_input_tokens = cached;
            self.usage.input_tokens = input.saturating_add(cached).saturating_add(written);
        }
        if let Some(output) = count("output_tokens") {
            self.usage.output_tokens = output;
        }
    }
}

fn block_index(message: &Value) -> Result<u64, WireError> {
    message
        .get("index")
        .and_then(Value::as_u64)
        .ok_or_else(|| WireError::OutOfOrder("a content block has no index".to_owned()))
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    }
}
