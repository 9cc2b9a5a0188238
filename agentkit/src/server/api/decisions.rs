use std::collections::BTreeSet;

use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::{
    Problem,
    extract::{self, Path, Who, id},
    metrics::DecidedLabels,
    sight::{Seen, Sight},
    state::Server,
    view::{DecidedView, DecisionView, spec_of},
};
use crate::{
    approval::{Decision, Settlement, Verdict},
    call::{Canonical, Fingerprint, Principal},
};

/// A decision about one call. It says nothing of who decides: that is the caller.
#[derive(Deserialize, ToSchema)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum DecisionBody {
    /// The call may run, with exactly the arguments of the fingerprint.
    Approve {
        #[schema(value_type = String)]
        fingerprint: Fingerprint,
    },
    /// The call must not run; the model receives the reason.
    Decline {
        #[schema(value_type = String)]
        fingerprint: Fingerprint,
        /// Why; a blank reason is none.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The call is to run with these arguments instead; they are checked, gated and
    /// fingerprinted anew.
    Amend {
        #[schema(value_type = String)]
        fingerprint: Fingerprint,
        /// All arguments, as a full replacement.
        #[schema(value_type = Object)]
        arguments: Value,
        /// Why; a blank reason is none.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The answer to the tool's question.
    Answer {
        #[schema(value_type = String)]
        fingerprint: Fingerprint,
        /// Checked against the tool's schema before anything changes. Required, also where it is
        /// `null`.
        #[serde(deserialize_with = "present")]
        data: Value,
    },
    /// The call is withdrawn.
    Cancel {
        #[schema(value_type = String)]
        fingerprint: Fingerprint,
    },
    /// What really happened to a call in doubt.
    Settle {
        #[schema(value_type = String)]
        fingerprint: Fingerprint,
        happened: Happened,
        /// The result, or what went wrong, for the model; not for `retry`.
        #[serde(default)]
        text: Option<String>,
    },
}

/// What a person found out about a call whose instance died.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Happened {
    /// It took effect.
    Succeeded,
    /// It did not take effect.
    Failed,
    /// It did not take effect and is to run now.
    Retry,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Value::deserialize(deserializer)
}

/// The longest reason, in characters.
const REASON: usize = 4000;

/// The most calls of a batch.
const LARGEST: usize = 100;

impl DecisionBody {
    fn verdict(self) -> Result<(Fingerprint, Verdict), Problem> {
        Ok(match self {
            Self::Approve { fingerprint } => (fingerprint, Verdict::Approve),
            Self::Decline {
                fingerprint,
                reason,
            } => {
                let reason = checked(reason)?;
                (fingerprint, Verdict::Decline { reason })
            }
            Self::Amend {
                fingerprint,
                arguments,
                reason,
            } => {
                let arguments = canonical(&arguments, "arguments")?;
                let reason = checked(reason)?;
                (fingerprint, Verdict::Amend { arguments, reason })
            }
            Self::Answer { fingerprint, data } => {
                let data = canonical(&data, "data")?;
                (fingerprint, Verdict::Answer { data })
            }
            Self::Cancel { fingerprint } => (fingerprint, Verdict::Cancel),
            Self::Settle {
                fingerprint,
                happened,
                text,
            } => {
                let text = checked(text)?.unwrap_or_default();
                let needs_text = !matches!(happened, Happened::Retry);
                if needs_text == text.trim().is_empty() {
                    let detail = "`text` says what came of it, for `succeeded` and `failed` only";
                    return Err(Problem::malformed(detail));
                }
                let settlement = match happened {
                    Happened::Succeeded => Settlement::Succeeded { result: text },
                    Happened::Failed => Settlement::Failed { message: text },
                    Happened::Retry => Settlement::Retry,
                };
                (fingerprint, Verdict::Settle(settlement))
            }
        })
    }
}

fn checked(reason: Option<String>) -> Result<Option<String>, Problem> {
    match reason {
        Some(reason) if reason.chars().count() > REASON => Err(Problem::malformed(format!(
            "the reason has more than {REASON} characters"
        ))),
        reason => Ok(reason),
    }
}

fn canonical(value: &Value, name: &str) -> Result<Canonical, Problem> {
    Canonical::of(value).map_err(|error| Problem::malformed(format!("`{name}`: {error}")))
}

/// Decides about a call. Repeating a decision answers with the recorded one; one that conflicts
/// is refused with the recorded one (409). When a decision lets the run go on, this instance
/// continues it.
#[utoipa::path(post, path = "/v1/runs/{run}/calls/{call}/decision", tag = "pending",
    operation_id = "decide",
    params(
        ("run" = String, Path, description = "The run"),
        ("call" = String, Path, description = "The call"),
    ),
    request_body = DecisionBody,
    responses(
        (status = 200, body = DecidedView),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn decide(
    State(server): State<Server>,
    Who(who): Who,
    Path((run, call)): Path<(String, String)>,
    extract::Json(body): extract::Json<DecisionBody>,
) -> Result<Json<DecidedView>, Problem> {
    let (run, call) = (id(&run, "run")?, id(&call, "call")?);
    let (fingerprint, verdict) = body.verdict()?;
    // Whoever may not see the call does not learn from the refusal that it exists.
    let seen = Sight::of(&server, &who).await?.call(&run, &call).await?;
    let decision = Decision {
        run,
        call,
        fingerprint,
        verdict,
    };
    record(&server, &who, &seen, decision).await.map(Json)
}

/// Records a decision about a call that the caller may see, and lets the run go on where it can.
pub(in crate::server) async fn record(
    server: &Server,
    who: &Principal,
    seen: &Seen,
    decision: Decision,
) -> Result<DecidedView, Problem> {
    let run = &seen.call.run;
    let root = run.path.first().and_then(|root| server.agents.get(root));
    let runtime = root.ok_or_else(|| Problem::not_hosted(&run.agent))?;
    let label = decision.verdict.kind().to_string();
    let outcome = runtime.decide(who, decision).await;
    let word = match &outcome {
        Ok(decided) if decided.repeated => "repeated",
        Ok(_) => "recorded",
        Err(_) => "refused",
    };
    let labels = DecidedLabels {
        decision: label,
        outcome: word.to_owned(),
    };
    server.metrics.decisions.get_or_create(&labels).inc();
    let decided = match outcome {
        Ok(decided) => decided,
        Err(error) => {
            // A refusal may have marked the call as expired.
            server.feed.nudge();
            return Err(error.into());
        }
    };
    server.go_on(run, decided.state);
    Ok(DecidedView {
        state: decided.state,
        decision: DecisionView::from(&decided.decision),
        repeated: decided.repeated,
        still_needed: decided.still_needed,
    })
}

/// Approvals that a person gives at once.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Batch {
    /// From 1 to 100, all of one tool, which is not destructive.
    #[schema(min_items = 1, max_items = 100)]
    approve: Vec<BatchItem>,
}

/// One call of a batch, with what the person saw of it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchItem {
    run: String,
    call: String,
    #[schema(value_type = String)]
    fingerprint: Fingerprint,
}

/// What became of a batch, in its order.
#[derive(Serialize, ToSchema)]
pub(super) struct BatchView {
    outcomes: Vec<BatchOutcome>,
}

/// What became of one call of a batch: one of the two.
#[derive(Serialize, ToSchema)]
pub(super) struct BatchOutcome {
    call: String,
    decided: Option<DecidedView>,
    problem: Option<Problem>,
}

/// Approves several calls of one tool. Calls of several tools, or of one whose effects cannot be
/// undone, are looked at one by one: such a batch is refused as a whole (422). Of the others each
/// is decided by itself: one that is refused does not keep the rest from being recorded.
#[utoipa::path(post, path = "/v1/approvals", tag = "pending", operation_id = "approve_several",
    request_body = Batch,
    responses(
        (status = 200, body = BatchView),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn approve_several(
    State(server): State<Server>,
    Who(who): Who,
    extract::Json(Batch { approve }): extract::Json<Batch>,
) -> Result<Json<BatchView>, Problem> {
    if approve.is_empty() || approve.len() > LARGEST {
        let detail = format!(
            "`approve`: it holds {}; it holds 1 to {LARGEST}",
            approve.len()
        );
        return Err(Problem::malformed(detail));
    }
    let sight = Sight::of(&server, &who).await?;
    let mut found = Vec::with_capacity(approve.len());
    for item in approve {
        let (run, call) = (id(&item.run, "run")?, id(&item.call, "call")?);
        let seen = sight.call(&run, &call).await?;
        let decision = Decision {
            run,
            call,
            fingerprint: item.fingerprint,
            verdict: Verdict::Approve,
        };
        found.push((seen, decision));
    }
    let tools: BTreeSet<_> = found
        .iter()
        .map(|(seen, _)| (seen.call.run.agent.as_str(), seen.call.call.tool.as_str()))
        .collect();
    let destructive = found.iter().any(|(seen, _)| {
        // What is not known here is treated as what cannot be undone.
        spec_of(&server, &seen.call).is_none_or(|tool| tool.spec().hints.destructive)
    });
    if tools.len() > 1 || destructive {
        let detail = "only calls of one tool, whose effects can be undone, are approved at once; \
                      decide about these one by one";
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(status, "not-a-batch", detail));
    }
    let mut outcomes = Vec::with_capacity(found.len());
    for (seen, decision) in found {
        let call = decision.call.to_string();
        let outcome = record(&server, &who, &seen, decision).await;
        let (decided, problem) = match outcome {
            Ok(decided) => (Some(decided), None),
            Err(problem) => (None, Some(problem)),
        };
        outcomes.push(BatchOutcome {
            call,
            decided,
            problem,
        });
    }
    Ok(Json(BatchView { outcomes }))
}
