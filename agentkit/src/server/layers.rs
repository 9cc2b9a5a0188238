//! What holds for every request, whatever it asks for.

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    Problem,
    metrics::Answered,
    state::{Server, Shared},
};

pub(super) fn around(routes: Router<Server>, server: &Server) -> Router<Server> {
    routes
        .fallback(|| async { Problem::unknown("path") })
        .method_not_allowed_fallback(|| async {
            let detail = "this path does not take this method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
        })
        .layer(CatchPanicLayer::custom(
            |_: Box<dyn std::any::Any + Send>| {
                tracing::error!("a handler panicked");
                let detail = "the server made a mistake; it is in its log";
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "fault", detail).into_response()
            },
        ))
        .layer(from_fn_with_state(std::sync::Arc::clone(server), watch))
        .layer(from_fn(secure))
}

/// Bounds the time until the answer begins, and counts.
async fn watch(
    State(server): State<std::sync::Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    // Twice: once for the body to arrive, once for the answer.
    let response = tokio::time::timeout(server.limits.time * 2, next.run(request))
        .await
        .unwrap_or_else(|_| {
            tracing::error!(route, "a request took too long");
            let detail = "the server cannot do this now; nothing was lost, try again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).into_response()
        });
    let status = response.status().as_u16();
    server
        .metrics
        .requests
        .get_or_create(&Answered { route, status })
        .inc();
    response
}

const fn headers() -> [(HeaderName, &'static str); 7] {
    [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()",
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
    ]
}

/// Headers that make a browser treat an answer as what it is. There are none of CORS: no other
/// site may read anything here.
async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in self::headers() {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
