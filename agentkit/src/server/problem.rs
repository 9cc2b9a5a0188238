use std::fmt;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    approval::RecordedDecision,
    run::{DecideError, RunError, StartError},
    store::StoreError,
};

/// An error as RFC 9457 problem details: what was wrong, with which value, and the remedy.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// What kind of problem it is: `about:blank#` and a name that programs can rely on.
    #[serde(rename = "type")]
    kind: String,
    /// The status in words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What was wrong here, and what to do.
    detail: String,
    /// What programs need besides, such as the recorded `decision`.
    #[serde(flatten)]
    #[schema(ignore)]
    more: Box<Map<String, Value>>,
}

impl Problem {
    /// A problem of a kind, such as `unknown`.
    pub fn new(status: StatusCode, kind: &str, detail: impl fmt::Display) -> Self {
        Self {
            kind: format!("about:blank#{kind}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.to_string(),
            more: Box::default(),
        }
    }

    /// Adds what programs need besides the text.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        if let Ok(value) = serde_json::to_value(value) {
            self.more.insert(name.to_owned(), value);
        }
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What was wrong, and what to do.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Something that does not exist, or not for the caller.
    pub(super) fn unknown(what: &str) -> Self {
        let detail = format!("there is no such {what}, or it is not yours to see");
        Self::new(StatusCode::NOT_FOUND, "unknown", detail)
    }

    /// A run of an agent that only other instances host.
    pub(super) fn not_hosted(agent: &str) -> Self {
        let detail = format!("this instance does not host `{agent}`; ask one that does");
        Self::new(StatusCode::CONFLICT, "not-hosted", detail)
    }

    pub(super) fn malformed(detail: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    /// Something that the caller did not cause and need not know more about.
    pub(super) fn unavailable(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = %chain(error), "a request could not be served");
        let detail = "the server cannot do this now; nothing was lost, try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
    }
}

/// An error with its sources.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static("Bearer realm=\"agentkit\""),
                );
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::UnknownRun { .. } => Self::unknown("run"),
            StoreError::UnknownCall { .. } => Self::unknown("call"),
            StoreError::Conflict { .. } => {
                let detail = "it was changed at the same time; look at it again";
                Self::new(StatusCode::CONFLICT, "conflict", detail)
            }
            error => Self::unavailable(&error),
        }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Store(error) => error.into(),
            // Whose it is, and that it is anyone's, is nobody else's business.
            StartError::ForeignThread { .. } => Self::unknown("thread"),
            error @ StartError::ThreadId { .. } => Self::malformed(error),
            error => Self::unavailable(&error),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::UnknownRun { .. } => Self::unknown("run"),
            RunError::Store { source, .. } => source.into(),
            error => Self::unavailable(&error),
        }
    }
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Self {
        if let DecideError::Store(error) = error {
            return error.into();
        }
        let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::CONFLICT);
        let problem = Self::new(status, kind_of(&error), &error);
        match &error {
            DecideError::UnknownCall { .. } => Self::unknown("call"),
            DecideError::AlreadyDecided {
                state, recorded, ..
            } => problem.with("state", state).with(
                "decision",
                super::view::DecisionView::from(recorded.as_ref() as &RecordedDecision),
            ),
            DecideError::NotPending { state, .. } => problem.with("state", state),
            DecideError::FingerprintMismatch { current, .. } => problem.with("current", current),
            DecideError::DoesNotFit(errors) => {
                let mut problem = problem;
                problem.detail = errors.to_string();
                let problems: Vec<_> = errors
                    .problems()
                    .iter()
                    .map(|one| serde_json::json!({ "path": one.path, "message": one.message }))
                    .collect();
                problem.with("problems", problems)
            }
            _ => problem,
        }
    }
}

const fn kind_of(error: &DecideError) -> &'static str {
    match error {
        DecideError::UnknownCall { .. } => "unknown",
        DecideError::AlreadyDecided { .. } => "already-decided",
        DecideError::NotPending { .. } => "not-pending",
        DecideError::FingerprintMismatch { .. } => "fingerprint-mismatch",
        DecideError::Tampered { .. } => "tampered",
        DecideError::Expired { .. } => "expired",
        DecideError::NotAllowed { .. } => "not-allowed",
        DecideError::WrongKind { .. } => "wrong-kind",
        DecideError::DoesNotFit(_) => "does-not-fit",
        DecideError::UnknownTool { .. } => "unknown-tool",
        _ => "unavailable",
    }
}
