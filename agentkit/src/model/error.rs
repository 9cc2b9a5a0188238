use std::{error::Error, fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

/// Why a turn of a model failed.
///
/// Nothing of the failed turn counts, and the conversation before it is untouched, so the same
/// request can be sent again. [`is_retryable`](Self::is_retryable) says whether that may help.
#[derive(Clone, Debug)]
pub struct ModelError {
    kind: ModelErrorKind,
    message: String,
    status: Option<u16>,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What went wrong, as far as a caller can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The stream stopped before its end event.
    Truncated,
    /// Too many requests; see [`ModelError::retry_after`].
    RateLimited,
    /// The provider has no capacity at the moment.
    Overloaded,
    /// The provider could not be reached, or failed on its side.
    Unavailable,
    /// The account's money or quota is used up; waiting does not help.
    QuotaExhausted,
    /// The key is missing, wrong, or not allowed to use the model.
    Authentication,
    /// The provider, or our own check, refused the request as it stands.
    InvalidRequest,
    /// The answer does not follow the provider's own protocol.
    Protocol,
}

impl ModelError {
    /// An error with a text for humans: lower case, no full stop, remedy included.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            source: None,
        }
    }

    /// The error of a stream that stopped before its end event.
    pub fn truncated(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Truncated, message)
    }

    /// The error of an answer that breaks the provider's protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Protocol, message)
    }

    /// Adds the HTTP status that the provider answered with.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds how long the provider asks to wait before the next request.
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds the error below this one.
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What went wrong, as far as a caller can act on it.
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// The HTTP status, when there was an HTTP answer.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// How long the provider asks to wait before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the same request may succeed when it is sent again.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ModelErrorKind::Truncated
            | ModelErrorKind::RateLimited
            | ModelErrorKind::Overloaded
            | ModelErrorKind::Unavailable => true,
            ModelErrorKind::QuotaExhausted
            | ModelErrorKind::Authentication
            | ModelErrorKind::InvalidRequest
            | ModelErrorKind::Protocol => false,
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(status) = self.status {
            write!(f, " (HTTP status {status})")?;
        }
        Ok(())
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
