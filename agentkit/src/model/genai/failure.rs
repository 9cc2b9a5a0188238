//! From what providers, genai and the network report to a [`ModelError`] that can be acted on.

use std::time::Duration;

use ::genai::{Error, webc::StreamTimeout};
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::events::WireError;
use crate::model::{ModelError, ModelErrorKind};

/// The longest text of a provider that is repeated in an error, in characters.
const LONGEST_QUOTE: usize = 500;

/// Writes errors about one provider, and keeps the key out of them.
#[derive(Clone)]
pub(super) struct Failures {
    provider: String,
    secret: String,
}

impl Failures {
    pub(super) fn new(provider: &str, secret: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            secret: secret.to_owned(),
        }
    }

    /// Whether the error is about the connection, and not about what came over it.
    pub(super) fn is_transport(error: &Error) -> bool {
        matches!(
            error,
            Error::WebStream { .. }
                | Error::WebModelCall { .. }
                | Error::WebAdapterCall { .. }
                | Error::HttpError { .. }
        )
    }

    /// What genai reports; `answered` says whether a part of the answer had come already.
    pub(super) fn of(&self, error: Error, answered: bool) -> ModelError {
        // genai puts the HTTP error below the stream's, where its own accessors do not look.
        let http = match &error {
            Error::WebStream { error, .. } => error.downcast_ref(),
            other => Some(other),
        };
        if let Some(http) = http
            && let Some(status) = http.status()
        {
            let body = match http {
                Error::HttpError { body, .. } => body,
                _ => "",
            };
            return self.refused(status.as_u16(), http.headers(), body);
        }
        match error {
            Error::WebStream { error, cause, .. } => self.broken(error, &cause, answered),
            other => ModelError::new(
                ModelErrorKind::InvalidRequest,
                format!(
                    "the request to `{}` could not be made: {}",
                    self.provider,
                    self.quote(&other.to_string())
                ),
            ),
        }
    }

    /// A connection that broke, or never came about.
    fn broken(&self, error: ::genai::BoxError, cause: &str, answered: bool) -> ModelError {
        let provider = &self.provider;
        let timeout = error.downcast_ref::<StreamTimeout>().copied();
        let error = match error.downcast::<reqwest::Error>() {
            // Addresses may carry keys.
            Ok(error) => error.without_url(),
            Err(_) => {
                return match timeout {
                    Some(StreamTimeout::Headers) => ModelError::new(
                        ModelErrorKind::Unavailable,
                        format!("the provider `{provider}` did not answer in time"),
                    ),
                    Some(StreamTimeout::Read) => ModelError::truncated(format!(
                        "the provider `{provider}` fell silent before the end of its turn"
                    )),
                    None => ModelError::protocol(format!(
                        "the answer of `{provider}` cannot be read: {}",
                        self.quote(cause)
                    )),
                };
            }
        };
        // The answer had begun when its head was there, or a part of its body.
        let (kind, message) = if answered || error.is_body() || error.is_decode() {
            (
                ModelErrorKind::Truncated,
                format!("the connection to `{provider}` broke before the end of the turn"),
            )
        } else if error.is_builder() {
            (
                ModelErrorKind::InvalidRequest,
                format!("the endpoint or a header for `{provider}` is not valid"),
            )
        } else {
            (
                ModelErrorKind::Unavailable,
                format!("the provider `{provider}` cannot be reached"),
            )
        };
        ModelError::new(kind, message).with_source(error)
    }

    /// An answer that is a refusal by its HTTP status.
    fn refused(&self, status: u16, headers: Option<&HeaderMap>, body: &str) -> ModelError {
        let report = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
        let report = report.get("error").unwrap_or(&report);
        let kind = match status {
            401 | 403 => ModelErrorKind::Authentication,
            402 => ModelErrorKind::QuotaExhausted,
            429 if is_quota(report) => ModelErrorKind::QuotaExhausted,
            429 => ModelErrorKind::RateLimited,
            503 | 529 => ModelErrorKind::Overloaded,
            408 | 409 | 425 | 500.. => ModelErrorKind::Unavailable,
            _ => ModelErrorKind::InvalidRequest,
        };
        let mut error = ModelError::new(
            kind,
            format!(
                "the provider `{}` refused the request: {}",
                self.provider,
                self.told(report)
            ),
        )
        .with_status(status);
        if let Some(wait) = headers.and_then(retry_after) {
            error = error.with_retry_after(wait);
        }
        error
    }

    /// An event of the stream that is a report of failure, or cannot be read.
    pub(super) fn unreadable(&self, error: WireError) -> ModelError {
        let provider = &self.provider;
        match error {
            WireError::Reported(report) => ModelError::new(
                reported_kind(&report),
                format!(
                    "the provider `{provider}` broke off its turn: {}",
                    self.told(&report)
                ),
            ),
            WireError::EndsWithoutReason => ModelError::truncated(format!(
                "the provider `{provider}` ended its stream before the end of its turn"
            )),
            WireError::OutOfOrder(what) => ModelError::protocol(format!(
                "the answer of `{provider}` breaks its protocol: {what}"
            )),
            WireError::NotJson(source) => {
                ModelError::protocol(format!("an event of `{provider}` is not JSON"))
                    .with_source(source)
            }
        }
    }

    /// A stream that was closed in good order, but too early.
    pub(super) fn truncated(&self) -> ModelError {
        ModelError::truncated(format!(
            "the provider `{}` closed its stream before the end of its turn",
            self.provider
        ))
    }

    fn told(&self, report: &Value) -> String {
        match report.get("message").and_then(Value::as_str) {
            Some(message) => self.quote(message),
            None => match report.as_str() {
                Some(text) if !text.trim().is_empty() => self.quote(text),
                Some(_) => "without a reason".to_owned(),
                None => self.quote(&report.to_string()),
            },
        }
    }

    /// A text of the provider's, bounded, on one line, and without the key.
    fn quote(&self, text: &str) -> String {
        let text = if self.secret.is_empty() {
            text.to_owned()
        } else {
            text.replace(&self.secret, "[key]")
        };
        let mut quoted: String = text
            .chars()
            .map(|character| {
                if character.is_control() {
                    ' '
                } else {
                    character
                }
            })
            .take(LONGEST_QUOTE)
            .collect();
        if quoted.len() < text.len() {
            quoted.push('…');
        }
        format!("`{}`", quoted.trim())
    }
}

/// What kind a report within the stream is of.
fn reported_kind(report: &Value) -> ModelErrorKind {
    if is_quota(report) {
        return ModelErrorKind::QuotaExhausted;
    }
    let text = |name| report.get(name).and_then(Value::as_str).unwrap_or_default();
    // OpenRouter gives the HTTP status of the provider behind it as the code.
    let status = report.get("code").and_then(Value::as_u64).unwrap_or(0);
    match (text("type"), text("code"), status) {
        ("overloaded_error", ..) | (_, _, 503 | 529) => ModelErrorKind::Overloaded,
        ("rate_limit_error", ..) | (_, "rate_limit_exceeded", _) | (_, _, 429) => {
            ModelErrorKind::RateLimited
        }
        ("authentication_error" | "permission_error", ..)
        | (_, "invalid_api_key", _)
        | (_, _, 401 | 403) => ModelErrorKind::Authentication,
        ("invalid_request_error" | "not_found_error" | "request_too_large", ..)
        | (_, _, 400 | 404 | 413 | 422) => ModelErrorKind::InvalidRequest,
        _ => ModelErrorKind::Unavailable,
    }
}

fn is_quota(report: &Value) -> bool {
    ["type", "code"].iter().any(|name| {
        matches!(
            report.get(name).and_then(Value::as_str),
            Some("insufficient_quota" | "billing_error" | "billing_hard_limit_reached")
        )
    })
}

/// How long the provider asks to wait: `retry-after-ms`, or `retry-after` in seconds. A date there
/// is not read; no provider of models is known to send one.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| -> Option<f64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let seconds = number("retry-after-ms")
        .map(|milliseconds| milliseconds / 1000.0)
        .or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}
