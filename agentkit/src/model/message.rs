use serde::{Deserialize, Serialize};

use crate::call::CallId;

/// One message of a conversation, as it is stored and as it is shown to a model.
///
/// The stored form is JSON with the role as tag: `{"role":"user","text":"…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// What the user said.
    User(UserMessage),
    /// One whole turn of the model.
    Assistant(AssistantMessage),
    /// The results of all tool calls of the turn before, in the order of the calls.
    Tool(ToolMessage),
}

/// What the user said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The text.
    pub text: String,
}

/// One whole turn of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// What it said; empty when it only called tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tools it called, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallPart>,
}

/// The results of one turn's calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolMessage {
    /// One result for each call of the turn, in the order of the calls.
    pub results: Vec<ToolResultPart>,
}

/// One tool call as the model proposed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallPart {
    /// Our own id: unique, where providers repeat theirs.
    pub call: CallId,
    /// The id under which the provider expects the result.
    pub provider_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments: the raw text that the model wrote, which need not be JSON.
    pub arguments: String,
}

/// The outcome of one tool call, as the model is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResultPart {
    /// Our own id of the call.
    pub call: CallId,
    /// The provider's id of the call.
    pub provider_id: String,
    /// The tool's name.
    pub tool: String,
    /// How the call ended.
    pub status: ResultStatus,
    /// The tool's output as JSON text, or the reason why there is none.
    pub content: String,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResultStatus {
    /// The tool ran and returned.
    Succeeded,
    /// The tool ran and failed.
    Failed,
    /// The arguments could not be read, or the tool does not exist.
    Invalid,
    /// The policy forbids the call.
    Denied,
    /// A human declined the call.
    Declined,
    /// Nobody decided in time.
    Expired,
    /// The call, or its run, was cancelled.
    Cancelled,
    /// Whether the tool ran is not known.
    InDoubt,
    /// There is no outcome yet, as where a call of an earlier run waits for a person.
    Pending,
}

impl Message {
    /// A user's message.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(UserMessage { text: text.into() })
    }

    /// A turn of the model.
    pub fn assistant(text: impl Into<String>, tool_calls: Vec<ToolCallPart>) -> Self {
        let text = text.into();
        Self::Assistant(AssistantMessage { text, tool_calls })
    }

    /// The results of one turn's calls, in the order of the calls.
    pub fn tool(results: Vec<ToolResultPart>) -> Self {
        Self::Tool(ToolMessage { results })
    }
}

impl ResultStatus {
    /// Whether the tool did what it was asked.
    pub fn is_success(self) -> bool {
        self == Self::Succeeded
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_stored_form_is_stable() {
        let call: CallId = "c-1".parse().unwrap();
        let messages = vec![
            Message::user("hi"),
            Message::assistant(
                "",
                vec![ToolCallPart {
                    call: call.clone(),
                    provider_id: "p-1".into(),
                    tool: "find".into(),
                    arguments: "{\"id\": 1".into(),
                }],
            ),
            Message::tool(vec![ToolResultPart {
                call,
                provider_id: "p-1".into(),
                tool: "find".into(),
                status: ResultStatus::InDoubt,
                content: "no".into(),
            }]),
        ];
        let stored = serde_json::to_value(&messages).unwrap();
        assert_eq!(
            stored,
            json!([
                {"role": "user", "text": "hi"},
                {"role": "assistant", "tool_calls": [
                    {"call": "c-1", "provider_id": "p-1", "tool": "find", "arguments": "{\"id\": 1"}
                ]},
                {"role": "tool", "results": [
                    {"call": "c-1", "provider_id": "p-1", "tool": "find", "status": "in_doubt", "content": "no"}
                ]},
            ])
        );
        assert_eq!(
            serde_json::from_value::<Vec<Message>>(stored).unwrap(),
            messages
        );
    }
}
