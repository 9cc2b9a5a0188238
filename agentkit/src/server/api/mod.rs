//! The native API.

mod agents;
mod audit;
mod decisions;
mod events;
mod health;
mod pending;
mod policy;
mod runs;
mod sse;
mod threads;
mod waiting;

use axum::Router;
use utoipa::{
    OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{ai_sdk, inbox, state::Server};
pub(super) use decisions::record as decide_seen;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "agentkit",
        description = "Runs of agents, what waits in them for people, and decisions. A decision \
                       names a call and the fingerprint that the person saw; who decides comes \
                       from the credentials alone.",
    ),
    tags(
        (name = "pending", description = "What waits for people, and decisions about it"),
        (name = "runs", description = "Starting and continuing runs"),
        (name = "policy", description = "The policy in force"),
        (name = "audit", description = "The journal"),
        (name = "server", description = "The server itself"),
    ),
    security(("bearer" = [])),
)]
struct Document;

/// All routes, and the OpenAPI document of those that programs use.
pub(super) fn routes() -> (Router<Server>, utoipa::openapi::OpenApi) {
    let (mut router, mut document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(agents::me))
        .routes(routes!(agents::list))
        .routes(routes!(agents::read))
        .routes(routes!(runs::start))
        .routes(routes!(runs::list))
        .routes(routes!(runs::read))
        .routes(routes!(runs::resume))
        .routes(routes!(runs::cancel))
        .routes(routes!(events::attach))
        .routes(routes!(threads::read))
        .routes(routes!(pending::list))
        .routes(routes!(pending::live))
        .routes(routes!(pending::read))
        .routes(routes!(decisions::decide))
        .routes(routes!(decisions::approve_several))
        .routes(routes!(policy::current))
        .routes(routes!(policy::explain))
        .routes(routes!(audit::journal))
        .routes(routes!(audit::verify))
        .routes(routes!(health::healthy))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .routes(routes!(health::openapi))
        .split_for_parts();
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    for (path, handler) in inbox::routes() {
        router = router.route(&path, handler);
    }
    for (path, handler) in ai_sdk::routes() {
        router = router.route(path, handler);
    }
    (router, document)
}
