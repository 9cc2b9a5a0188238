use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::{
    Problem,
    extract::{Path, Who, id},
    sight::Sight,
    state::Server,
    view::{EntryView, time},
};

/// The journal of a run, for its requester and for auditors.
#[utoipa::path(get, path = "/v1/runs/{run}/journal", tag = "audit", operation_id = "read_journal",
    params(("run" = String, Path, description = "The run")),
    responses(
        (status = 200, body = Vec<EntryView>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn journal(
    State(server): State<Server>,
    Who(who): Who,
    Path(run): Path<String>,
) -> Result<Json<Vec<EntryView>>, Problem> {
    let run = id(&run, "run")?;
    Sight::of(&server, &who).await?.whole_run(&run).await?;
    let entries = server.store.journal(&run).await?;
    let entries = entries.iter().map(|entry| EntryView {
        sequence: entry.sequence,
        at: time(entry.at),
        event: entry.body.to_value().unwrap_or_default(),
        previous: entry.previous.map(|digest| digest.to_string()),
        digest: entry.digest.to_string(),
    });
    Ok(Json(entries.collect()))
}

/// Whether a journal is whole.
#[derive(Serialize, ToSchema)]
pub(super) struct Verified {
    /// Whether the chain holds from its first event to the recorded head.
    whole: bool,
    /// What is wrong, and where.
    problem: Option<String>,
}

/// Checks the chain of a run's journal.
#[utoipa::path(get, path = "/v1/runs/{run}/journal/verification", tag = "audit",
    operation_id = "verify_journal",
    params(("run" = String, Path, description = "The run")),
    responses(
        (status = 200, body = Verified),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn verify(
    State(server): State<Server>,
    Who(who): Who,
    Path(run): Path<String>,
) -> Result<Json<Verified>, Problem> {
    let run = id(&run, "run")?;
    Sight::of(&server, &who).await?.whole_run(&run).await?;
    let problem = server.store.verify_journal(&run).await?.err();
    Ok(Json(Verified {
        whole: problem.is_none(),
        problem: problem.map(|problem| problem.to_string()),
    }))
}
