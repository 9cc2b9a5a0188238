use axum::{Json, extract::State};

use super::super::{
    Problem,
    extract::{Path, Who},
    state::Server,
    view::{AgentView, MeView},
};

/// Who the caller is.
#[utoipa::path(get, path = "/v1/me", tag = "server", operation_id = "me", responses(
    (status = 200, body = MeView),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn me(State(server): State<Server>, Who(who): Who) -> Json<MeView> {
    Json(MeView::of(&server, &who))
}

/// The agents that this instance hosts, with their tools.
#[utoipa::path(get, path = "/v1/agents", tag = "runs", operation_id = "list_agents", responses(
    (status = 200, body = Vec<AgentView>),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(State(server): State<Server>, Who(_): Who) -> Json<Vec<AgentView>> {
    Json(
        server
            .agents
            .values()
            .map(|agent| AgentView::of(agent))
            .collect(),
    )
}

/// One agent.
#[utoipa::path(get, path = "/v1/agents/{agent}", tag = "runs", operation_id = "read_agent",
    params(("agent" = String, Path, description = "The agent's name")),
    responses(
        (status = 200, body = AgentView),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn read(
    State(server): State<Server>,
    Who(_): Who,
    Path(agent): Path<String>,
) -> Result<Json<AgentView>, Problem> {
    Ok(Json(AgentView::of(server.agent(&agent)?)))
}
