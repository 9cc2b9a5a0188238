use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use super::super::{Problem, extract::Who, state::Server};

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", tag = "server", operation_id = "healthy", security(()),
    responses((status = 204, description = "It does")))]
pub(super) async fn healthy() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Whether the server can work: its database answers.
#[utoipa::path(get, path = "/readyz", tag = "server", operation_id = "ready", security(()),
    responses(
        (status = 204, description = "It can"),
        (status = 503, body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn ready(State(server): State<Server>) -> Result<StatusCode, Problem> {
    server.store.now().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Metrics, in the OpenMetrics text form. They hold no ids.
#[utoipa::path(get, path = "/metrics", tag = "server", operation_id = "metrics",
    responses(
        (status = 200, body = String, content_type = "application/openmetrics-text"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn metrics(
    State(server): State<Server>,
    Who(_): Who,
) -> Result<Response, Problem> {
    let waiting = server.store.watermark().await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = server.metrics.text(waiting.count());
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// This description of the API.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "server", operation_id = "openapi",
    security(()), responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
pub(super) async fn openapi(State(server): State<Server>) -> Response {
    let kind = "application/json";
    ([(header::CONTENT_TYPE, kind)], server.openapi.clone()).into_response()
}
