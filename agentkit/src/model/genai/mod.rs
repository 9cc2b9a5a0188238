//! Models of providers on the network, through the crate `genai`.
//!
//! ```no_run
//! use agentkit::model::{Retrying, genai::GenaiModel};
//!
//! # fn main() -> Result<(), agentkit::model::ModelError> {
//! // The key is read from OPENAI_API_KEY.
//! let model = Retrying::new(GenaiModel::new("openai/gpt-5-mini")?);
//! let local = GenaiModel::new("openai/qwen3")?
//!     .endpoint("http://localhost:8000/v1")
//!     .key("none");
//! # Ok(())
//! # }
//! ```
//!
//! `genai` knows each provider's address, headers and parameters, and carries the request and the
//! answer. What is said in between is written and read here, because its own reading of a stream
//! loses what must not be lost: it joins the arguments of interleaved calls, repeats in each piece
//! what it has accumulated so far, and turns arguments into a JSON value where a broken text and a
//! string look alike. So only the two protocols that are read here are offered: chat completions
//! (`OpenAI` and the many that speak like it) and messages (`Anthropic`). Gemini and Ollama can be
//! used through their chat completions endpoints.

mod chat_completions;
mod conversation;
mod events;
mod failure;
mod messages;
mod offer;
mod provider;

use std::{collections::BTreeMap, fmt, time::Duration};

use ::genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::{ChatOptions, ChatRequest},
    resolver::{AuthData, Endpoint},
};
use futures_util::StreamExt;
use serde_json::json;

use self::{
    events::{Frames, WireEvents},
    failure::Failures,
    offer::OfferForm,
    provider::Protocol,
};
use super::{ChatModel, ModelError, ModelErrorKind, ModelName, ModelRequest, ModelStream};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(15);
/// How long a provider may be silent, unless set: models that reason send nothing for minutes.
const SILENCE: Duration = Duration::from_mins(5);

/// A model of a provider on the network. Wrap it in [`Retrying`](super::Retrying) to survive the
/// provider's bad moments.
#[derive(Clone)]
pub struct GenaiModel {
    name: ModelName,
    adapter: AdapterKind,
    protocol: Protocol,
    endpoint: Option<String>,
    key: Option<String>,
    headers: BTreeMap<String, String>,
    silence: Duration,
    form: OfferForm,
    client: Client,
}

impl GenaiModel {
    /// The model of this name, as in `openai/gpt-5-mini` or `anthropic/claude-sonnet-4-5`.
    ///
    /// # Errors
    ///
    /// Kind [`InvalidRequest`](ModelErrorKind::InvalidRequest) when the name is none, or when the
    /// provider is not known or speaks neither of the two protocols.
    pub fn new(name: &str) -> Result<Self, ModelError> {
        let name: ModelName = name.parse().map_err(|error: super::ModelNameError| {
            ModelError::new(ModelErrorKind::InvalidRequest, error.to_string())
        })?;
        let (adapter, protocol) = provider::named(name.provider())?;
        let transport = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .build()
            .map_err(|error| {
                ModelError::new(
                    ModelErrorKind::Unavailable,
                    "the HTTP client could not be set up; see the source of this error",
                )
                .with_source(error)
            })?;
        let client = Client::builder()
            .with_reqwest(transport)
            .build()
            .map_err(|error| {
                ModelError::new(
                    ModelErrorKind::Unavailable,
                    format!("the model client could not be set up: {error}"),
                )
            })?;
        Ok(Self {
            name,
            adapter,
            protocol,
            endpoint: None,
            key: None,
            headers: BTreeMap::new(),
            silence: SILENCE,
            form: OfferForm::default(),
            client,
        })
    }

    /// Sends requests to this address instead of the provider's own, as in
    /// `http://localhost:8000/v1`.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        let mut url = url.into();
        // Without the slash, joining a path would replace the last segment.
        if !url.ends_with('/') && !url.contains('?') {
            url.push('/');
        }
        self.endpoint = Some(url);
        self
    }

    /// Uses this key instead of the one in the provider's environment variable.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sends this header with every request, in place of one of the same name.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into().to_ascii_lowercase();
        // The one header that genai writes in capitals; any other spelling would be sent beside it.
        let name = if name == "authorization" {
            "Authorization".to_owned()
        } else {
            name
        };
        self.headers.insert(name, value.into());
        self
    }

    /// Gives up when the provider sends nothing for so long; five minutes unless set.
    pub fn silence(mut self, longest: Duration) -> Self {
        self.silence = longest;
        self
    }

    /// Writes the types inside of a tool's arguments where they are used, for providers that do not
    /// follow `$ref`. A type that holds itself keeps its definition.
    pub fn inline_schemas(mut self) -> Self {
        self.form.inline = true;
        self
    }

    /// Asks the provider to hold the model to the schemas of tools while it writes (`strict`). A
    /// tool whose schema the provider's dialect cannot say is offered without; in the dialect every
    /// argument is required, and an optional one may be `null`.
    pub fn strict_tools(mut self) -> Self {
        self.form.strict = true;
        self
    }

    fn secret(&self) -> Result<String, ModelError> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        let variable = self.adapter.default_key_env_name().unwrap_or_default();
        std::env::var(variable).map_err(|_| {
            ModelError::new(
                ModelErrorKind::Authentication,
                format!(
                    "there is no key for the provider `{}`: set {variable}, or give one with `key`",
                    self.name.provider()
                ),
            )
        })
    }

    async fn target(&self, secret: &str) -> Result<ServiceTarget, ::genai::Error> {
        let model = ModelIden::new(self.adapter, self.name.model());
        let mut target = self.client.resolve_service_target(model).await?;
        target.auth = AuthData::from_single(secret);
        if let Some(url) = &self.endpoint {
            target.endpoint = Endpoint::from_owned(url.as_str());
        }
        Ok(target)
    }

    /// The request in genai's terms, and the messages in the provider's own.
    fn chat_request(
        &self,
        request: &ModelRequest,
    ) -> Result<(ChatRequest, ChatOptions), ModelError> {
        let turns = conversation::Conversation::of(&request.messages)?;
        let (system, messages) = match self.protocol {
            Protocol::ChatCompletions => (
                None,
                chat_completions::messages(request.instructions.as_deref(), &turns),
            ),
            Protocol::Messages => (request.instructions.clone(), messages::messages(&turns)),
        };
        let tools = request
            .tools
            .iter()
            .map(|tool| self.form.offer(tool))
            .collect();
        let chat = ChatRequest {
            system,
            tools: (!request.tools.is_empty()).then_some(tools),
            ..ChatRequest::default()
        };
        // genai would write the arguments of earlier calls anew, and cannot mark failed results.
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_stream_header_timeout(self.silence)
            .with_stream_read_timeout(self.silence)
            .with_reasoning_effort(provider::reasoning(self.adapter, self.protocol))
            .with_extra_body(json!({ "model": self.name.model(), "messages": messages }));
        if let Some(limit) = request.max_output_tokens {
            options = options.with_max_tokens(limit);
        }
        if let Some(temperature) = request.temperature {
            options = options.with_temperature(temperature);
        }
        if !self.headers.is_empty() {
            let headers: Vec<(String, String)> = self
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            options = options.with_extra_headers(headers);
        }
        Ok((chat, options))
    }
}

impl fmt::Debug for GenaiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Key and header values are secrets.
        f.debug_struct("GenaiModel")
            .field("name", &self.name)
            .field("endpoint", &self.endpoint)
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl ChatModel for GenaiModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let secret = self.secret()?;
        let (chat, options) = self.chat_request(request)?;
        let failures = Failures::new(self.name.provider(), &secret);
        let frames = Frames::default();
        let options = options.with_raw_frame_sink(frames.clone());
        let target = self.target(&secret).await;
        let target = target.map_err(|error| failures.of(error, false))?;
        let answer = self
            .client
            .exec_chat_stream(target, chat, Some(&options))
            .await;
        let answer = answer.map_err(|error| failures.of(error, false))?;
        let mut events = WireEvents::new(answer.stream, frames, self.protocol.reader(), failures);
        // A request that the provider refused fails here, not in the middle of the stream.
        match events.next().await {
            Some(Ok(first)) => Ok(futures_util::stream::iter([Ok(first)])
                .chain(events)
                .boxed()),
            Some(Err(error)) => Err(error),
            None => Err(ModelError::truncated(
                "the provider closed the stream without an answer",
            )),
        }
    }
}

#[cfg(test)]
mod tests;
