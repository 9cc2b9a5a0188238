use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Message, ToolResultPart};

/// What a model is asked: the conversation so far, and the tools it may call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The agent's standing instructions (the system prompt).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools on offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolOffer>,
    /// The most tokens the model may write; the provider's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature; the provider's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

/// A tool as it is described to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOffer {
    /// The tool's name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

impl ModelRequest {
    /// A request with a conversation and nothing else.
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }

    /// Sets the standing instructions.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the tools on offer.
    pub fn tools(mut self, tools: Vec<ToolOffer>) -> Self {
        self.tools = tools;
        self
    }

    /// Limits what the model may write, in tokens.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the sampling temperature.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// What the user said last.
    pub fn last_user_text(&self) -> Option<&str> {
        self.messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::User(user) => Some(user.text.as_str()),
                _ => None,
            })
    }

    /// The tool results that this request answers: empty unless they are the last message.
    pub fn last_results(&self) -> &[ToolResultPart] {
        match self.messages.last() {
            Some(Message::Tool(tool)) => &tool.results,
            _ => &[],
        }
    }

    /// How many turns the model has taken since the user last spoke.
    pub fn turns_since_user(&self) -> usize {
        self.messages
            .iter()
            .rev()
            .take_while(|message| !matches!(message, Message::User(_)))
            .filter(|message| matches!(message, Message::Assistant(_)))
            .count()
    }
}
