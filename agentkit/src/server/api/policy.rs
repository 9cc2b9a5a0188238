use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::{
    Problem,
    extract::{self, Path, Who},
    sight::Sight,
    state::Server,
};
use crate::{
    call::Digest,
    gate::derived_values,
    policy::{Call, Effect, Facts, Outcome, PolicyRef, SessionFacts},
};

/// The policy in force for an agent.
#[derive(Serialize, ToSchema)]
pub(super) struct PolicyView {
    /// SHA-256 over policies, schema and mapping: the version, as the journal names it.
    version: String,
    /// Whether it is the built-in one, since the application gave none.
    built_in: bool,
    policies: Vec<PolicyRefView>,
}

/// One policy.
#[derive(Serialize, ToSchema)]
pub(super) struct PolicyRefView {
    id: String,
    title: Option<String>,
    why: Option<String>,
    /// `permit` or `forbid`.
    effect: &'static str,
    file: String,
    line: u32,
}

impl PolicyRefView {
    fn of(policy: &PolicyRef) -> Self {
        Self {
            id: policy.id.clone(),
            title: policy.title.clone(),
            why: policy.why.clone(),
            effect: match policy.effect {
                Effect::Permit => "permit",
                Effect::Forbid => "forbid",
            },
            file: policy.file.clone(),
            line: policy.line,
        }
    }
}

/// The policy in force for an agent.
#[utoipa::path(get, path = "/v1/agents/{agent}/policy", tag = "policy",
    operation_id = "read_policy",
    params(("agent" = String, Path, description = "The agent's name")),
    responses(
        (status = 200, body = PolicyView),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn current(
    State(server): State<Server>,
    Who(_): Who,
    Path(agent): Path<String>,
) -> Result<Json<PolicyView>, Problem> {
    let policy = server.agent(&agent)?.policy();
    Ok(Json(PolicyView {
        version: Digest::from_bytes(policy.digest()).to_string(),
        built_in: policy.is_built_in(),
        policies: policy.policies().map(PolicyRefView::of).collect(),
    }))
}

/// A call that somebody thinks of.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    /// The tool's name.
    tool: String,
    /// Its arguments, as a model would send them.
    #[schema(value_type = Object)]
    arguments: Value,
}

/// What the policy makes of it, if the caller were the requester.
#[derive(Serialize, ToSchema)]
pub(super) struct Explained {
    /// `allow`, `require_approval` or `deny`.
    outcome: &'static str,
    /// How many people must approve, where they must.
    quorum: Option<u32>,
    /// The policies that bring it about; none for a denial by default.
    determining: Vec<PolicyRefView>,
    /// For a denial without a forbid: what kept the nearest permits from matching.
    nearest: Vec<NearView>,
    /// Errors of evaluation, none of which makes an answer laxer.
    errors: Vec<String>,
}

/// A permit that did not match.
#[derive(Serialize, ToSchema)]
pub(super) struct NearView {
    policy: PolicyRefView,
    /// The clauses that hold.
    holds: Vec<String>,
    /// The first one that does not.
    fails: String,
}

/// What the policy would make of a call on the caller's behalf. Nothing runs.
#[utoipa::path(post, path = "/v1/agents/{agent}/policy/explain", tag = "policy",
    operation_id = "explain",
    params(("agent" = String, Path, description = "The agent's name")),
    request_body = Question,
    responses(
        (status = 200, body = Explained),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn explain(
    State(server): State<Server>,
    Who(who): Who,
    Path(agent): Path<String>,
    extract::Json(question): extract::Json<Question>,
) -> Result<Json<Explained>, Problem> {
    let runtime = server.agent(&agent)?;
    let tool = runtime
        .tools
        .get(&question.tool)
        .ok_or_else(|| Problem::unknown("tool"))?;
    let settled = tool
        .settle(&question.arguments.to_string())
        .map_err(|error| does_not_fit(&error))?;
    let arguments = settled.to_value().map_err(Problem::malformed)?;
    let now = Sight::of(&server, &who).await?.now();
    let user = runtime.requester(&who).await;
    // As the first call of a run of its own: what a thread adds to the past is not known here.
    let session = SessionFacts::fresh("explain", agent.as_str(), now.as_micros());
    let derived = derived_values(tool.spec(), &settled);
    let explanation = runtime.policy().explain(&Call {
        tool: &question.tool,
        arguments: &arguments,
        user: &user,
        agent: &agent,
        run: "explain",
        step: 1,
        now: now.as_micros(),
        facts: Facts {
            session: Some(&session),
            derived: Some(&derived),
            ..Facts::default()
        },
    });
    let (outcome, quorum) = match explanation.decision.outcome {
        Outcome::Allow => ("allow", None),
        Outcome::RequireApproval { quorum } => ("require_approval", Some(quorum)),
        Outcome::Deny => ("deny", None),
    };
    let decision = &explanation.decision;
    Ok(Json(Explained {
        outcome,
        quorum,
        determining: decision.determining.iter().map(PolicyRefView::of).collect(),
        errors: decision.errors.iter().map(ToString::to_string).collect(),
        nearest: explanation
            .nearest
            .iter()
            .map(|near| NearView {
                policy: PolicyRefView::of(&near.policy),
                holds: near.holds.clone(),
                fails: near.fails.clone(),
            })
            .collect(),
    }))
}

fn does_not_fit(error: &crate::tool::ArgumentError) -> Problem {
    Problem::new(
        axum::http::StatusCode::UNPROCESSABLE_ENTITY,
        "does-not-fit",
        error,
    )
}
