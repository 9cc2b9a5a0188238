//! What handlers take from a request, with problem details for whatever does not fit.

use std::{net::SocketAddr, str::FromStr};

use axum::{
    extract::{ConnectInfo, FromRequest, FromRequestParts, Request},
    http::{StatusCode, header, request::Parts},
};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;

use super::{
    AuthError, Problem,
    auth::session::adopt_cookie,
    state::{Caller, Server},
};
use crate::call::{Limits, Principal, decode_value};

/// The authenticated caller.
pub(super) struct Who(pub(super) Principal);

impl FromRequestParts<Server> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        adopt_cookie(parts);
        authenticate(parts, server).await.map(Self)
    }
}

/// Who makes the request; counts it.
pub(super) async fn authenticate(parts: &Parts, server: &Server) -> Result<Principal, Problem> {
    match server.authenticator.authenticate(parts).await {
        Ok(who) if who.id.is_empty() || who.id.len() > 128 => {
            tracing::warn!("the authenticator gave an id of {} bytes", who.id.len());
            Err(unauthorized(&AuthError::invalid("an id that none is")))
        }
        Ok(who) => {
            server.count(&Caller::Person(who.tenant.clone(), who.id.clone()))?;
            Ok(who)
        }
        Err(AuthError::Unavailable(source)) => Err(Problem::unavailable(source.as_ref())),
        Err(error) => {
            let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
            server.count(&Caller::Address(peer.map(|ConnectInfo(peer)| peer.ip())))?;
            if let AuthError::Invalid { why } = &error {
                tracing::info!(why, "credentials refused");
            }
            Err(unauthorized(&error))
        }
    }
}

fn unauthorized(error: &AuthError) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", error)
}

/// A JSON body: strict about the text (no key twice, no number that would be rounded) and about
/// the type (no unknown field), with the path of what is wrong.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Server> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, server: &Server) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let detail = "send a body of `content-type: application/json`";
            return Err(Problem::new(status, "unsupported-media-type", detail));
        }
        let text = body(request, server).await?;
        parse(&text, server.limits.body).map(Self)
    }
}

/// How many times the limit is read and dropped of a body that is too large, so that its client,
/// which may send all of it before it listens, hears why.
const PATIENCE: usize = 8;

/// A whole body as text, within the limits.
async fn body(request: Request, server: &Server) -> Result<String, Problem> {
    let limit = server.limits.body;
    let most = limit.saturating_mul(PATIENCE);
    let too_large = || {
        let detail = format!("the body is larger than {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    };
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut stream = request.into_body().into_data_stream();
    let reading = async {
        let (mut bytes, mut seen) = (Vec::new(), 0_usize);
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| Problem::malformed("the body did not arrive whole"))?;
            seen = seen.saturating_add(chunk.len());
            if seen <= limit {
                bytes.extend_from_slice(&chunk);
            } else if seen > most {
                break;
            }
        }
        if seen > limit {
            return Err(too_large());
        }
        Ok(bytes)
    };
    let bytes = tokio::time::timeout(server.limits.time, reading)
        .await
        .map_err(|_| {
            let detail = "the body took too long to arrive";
            Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", detail)
        })??;
    String::from_utf8(bytes).map_err(|_| Problem::malformed("the body is not UTF-8"))
}

pub(super) fn parse<T: DeserializeOwned>(text: &str, limit: usize) -> Result<T, Problem> {
    let limits = Limits {
        bytes: limit,
        ..Limits::default()
    };
    let value = decode_value(text, limits).map_err(Problem::malformed)?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." {
            "the body".to_owned()
        } else {
            format!("`{path}`")
        };
        Problem::malformed(format!("{at}: {}", error.inner()))
    })
}

/// A query, with problem details for what does not fit.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Server> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Server) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|error| Problem::malformed(format!("the query: {}", error.body_text())))
    }
}

/// The segments of the path, as text.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Server> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        axum::extract::Path::from_request_parts(parts, server)
            .await
            .map(|axum::extract::Path(path)| Self(path))
            .map_err(|_| Problem::unknown("path"))
    }
}

/// An id out of a path or query: one that is none names nothing.
pub(super) fn id<T: FromStr>(text: &str, what: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| Problem::unknown(what))
}
