use genai::{adapter::AdapterKind, chat::ReasoningEffort};

use super::{
    chat_completions::ChatCompletionsReader, events::WireReader, messages::MessagesReader,
};
use crate::model::{ModelError, ModelErrorKind};

/// What is spoken on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    ChatCompletions,
    Messages,
}

impl Protocol {
    pub(super) fn reader(self) -> Box<dyn WireReader> {
        match self {
            Self::ChatCompletions => Box::new(ChatCompletionsReader::default()),
            Self::Messages => Box::new(MessagesReader::default()),
        }
    }
}

/// The providers that speak one of the two protocols: those that genai passes through its own chat
/// completions or messages adapter.
const PROVIDERS: [(AdapterKind, Protocol); 14] = [
    (AdapterKind::OpenAI, Protocol::ChatCompletions),
    (AdapterKind::Anthropic, Protocol::Messages),
    (AdapterKind::Aliyun, Protocol::ChatCompletions),
    (AdapterKind::DeepSeek, Protocol::ChatCompletions),
    (AdapterKind::Groq, Protocol::ChatCompletions),
    (AdapterKind::Kimi, Protocol::ChatCompletions),
    (AdapterKind::MiniMax, Protocol::Messages),
    (AdapterKind::Mistral, Protocol::ChatCompletions),
    (AdapterKind::Moonshot, Protocol::ChatCompletions),
    (AdapterKind::Nebius, Protocol::ChatCompletions),
    (AdapterKind::OpenRouter, Protocol::ChatCompletions),
    (AdapterKind::QwenCloud, Protocol::ChatCompletions),
    (AdapterKind::Together, Protocol::ChatCompletions),
    (AdapterKind::Xai, Protocol::ChatCompletions),
];

/// How the provider of this name is reached and spoken to.
///
/// # Errors
///
/// When it is not among those that can be spoken to.
pub(super) fn named(provider: &str) -> Result<(AdapterKind, Protocol), ModelError> {
    PROVIDERS
        .into_iter()
        .find(|(adapter, _)| adapter.as_lower_str() == provider)
        .ok_or_else(|| {
            let known = PROVIDERS
                .map(|(adapter, _)| adapter.as_lower_str())
                .join(", ");
            ModelError::new(
                ModelErrorKind::InvalidRequest,
                format!(
                    "the provider `{provider}` is not known: use one of {known}; any other that \
                     offers chat completions can be used as `openai/…` with its own `endpoint`"
                ),
            )
        })
}

/// The reasoning that is asked for.
///
/// It has to be said, because genai reads it out of the model's name otherwise (`qwen-max`
/// becomes `qwen` with the greatest effort). Reasoning is not stored, and these providers refuse to
/// go on from a turn that reasoned without being shown its reasoning again: there it is switched
/// off. Elsewhere a token budget is what chat completions have no word for, so that nothing is
/// sent and the model's own default holds.
pub(super) fn reasoning(adapter: AdapterKind, protocol: Protocol) -> ReasoningEffort {
    match (adapter, protocol) {
        (AdapterKind::DeepSeek, _) | (_, Protocol::Messages) => ReasoningEffort::Zero,
        (_, Protocol::ChatCompletions) => ReasoningEffort::Budget(0),
    }
}
