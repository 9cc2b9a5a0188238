//! What leaves the server. Arguments go out twice: as JSON, for programs, and as the canonical
//! text whose fingerprint is decided about, since a browser's numbers cannot hold all integers.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    sight::{Seen, Standing},
    state::Shared,
};
use crate::{
    approval::{PendingCall, PendingKind, Reason, RecordedDecision, Vote},
    call::{CallState, Canonical, Principal, Timestamp},
    run::Runtime,
    store::{CallInSight, RunRecord},
    tool::{DynTool, ToolSpec},
};

/// The caller.
#[derive(Serialize, ToSchema)]
pub(super) struct MeView {
    /// The id under which policies know the caller.
    id: String,
    tenant: Option<String>,
    roles: Vec<String>,
    authenticated_by: String,
    /// Whether the caller sees everything of the tenant.
    auditor: bool,
    /// A warning that every page must show.
    warning: Option<String>,
}

impl MeView {
    pub(super) fn of(server: &Shared, who: &Principal) -> Self {
        Self {
            id: who.id.clone(),
            tenant: who.tenant.clone(),
            roles: who.roles.iter().cloned().collect(),
            authenticated_by: who.authenticated_by.clone(),
            auditor: server.is_auditor(who),
            warning: server.authenticator.warning().map(str::to_owned),
        }
    }
}

/// An agent that this instance hosts.
#[derive(Serialize, ToSchema)]
pub(super) struct AgentView {
    name: String,
    tools: Vec<ToolView>,
}

/// A tool.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolView {
    name: String,
    description: String,
    severity: Severity,
    /// Whether the declaration demands an approval; a policy may, besides.
    require_approval: bool,
    /// JSON Schema (2020-12) of the arguments.
    input_schema: Value,
    /// JSON Schema of the answer to its question, where it asks one.
    resume_schema: Option<Value>,
}

/// What the tool's author says about its effects.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    /// It changes nothing.
    ReadOnly,
    /// It changes something.
    Normal,
    /// What it does cannot be undone.
    Destructive,
}

impl Severity {
    const fn of(spec: &ToolSpec) -> Self {
        if spec.hints.destructive {
            Self::Destructive
        } else if spec.hints.read_only {
            Self::ReadOnly
        } else {
            Self::Normal
        }
    }
}

impl AgentView {
    pub(super) fn of(runtime: &Runtime) -> Self {
        Self {
            name: runtime.agent.clone(),
            tools: runtime
                .tools
                .iter()
                .map(|tool| ToolView::of(tool.as_ref()))
                .collect(),
        }
    }
}

impl ToolView {
    fn of(tool: &dyn DynTool) -> Self {
        let spec = tool.spec();
        Self {
            name: spec.name.clone(),
            description: spec.description.clone(),
            severity: Severity::of(spec),
            require_approval: spec.approval.required,
            input_schema: spec.input_schema.clone(),
            resume_schema: spec.resume_schema.clone(),
        }
    }
}

/// A run.
#[derive(Serialize, ToSchema)]
pub(super) struct RunView {
    id: String,
    agent: String,
    /// `running`, `suspended`, `interrupted`, `finished` or `cancelled`.
    status: String,
    requester: PersonView,
    /// How many times the model has answered.
    step: u32,
    #[schema(format = "date-time")]
    created_at: String,
    /// Why it is interrupted.
    error: Option<String>,
    /// The calls that wait for people and that the caller may see.
    pending: Vec<PendingView>,
}

impl RunView {
    pub(super) fn of(server: &Shared, run: &RunRecord, seen: &[Seen]) -> Self {
        let pending = seen.iter().filter_map(|seen| PendingView::of(server, seen));
        Self {
            id: run.id.to_string(),
            agent: run.agent.clone(),
            status: run.status.to_string(),
            requester: PersonView::of(&run.requester),
            step: run.step,
            created_at: run.created_at.to_string(),
            error: run.error.clone(),
            pending: pending.collect(),
        }
    }
}

/// A person, as others may see one.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct PersonView {
    id: String,
    authenticated_by: String,
}

impl PersonView {
    fn of(person: &Principal) -> Self {
        Self {
            id: person.id.clone(),
            authenticated_by: person.authenticated_by.clone(),
        }
    }
}

/// Why a person is asked, in words.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct ReasonView {
    /// `declaration`, `run_option`, `predicate`, `predicate_unavailable`, `policy` or
    /// `asked_again`.
    source: String,
    /// The policy's id, where it is one.
    policy: Option<String>,
    /// The policy's title, where it has one.
    title: Option<String>,
    /// In words.
    text: String,
}

impl ReasonView {
    fn of(reason: &Reason) -> Self {
        let source = serde_json::to_value(reason).ok();
        let source = source
            .as_ref()
            .and_then(|value| value.get("source")?.as_str());
        let (policy, title, text) = match reason {
            Reason::Policy { id, title, why } => (
                Some(id.clone()),
                title.clone(),
                why.clone().unwrap_or_default(),
            ),
            Reason::Declaration { why: Some(why) } => (None, None, why.clone()),
            other => (None, None, sentence(&other.to_string())),
        };
        Self {
            source: source.unwrap_or_default().to_owned(),
            policy,
            title,
            text,
        }
    }
}

/// A text that stands by itself.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), rest.as_str()),
        None => String::new(),
    }
}

/// An approval that counts so far.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct VoteView {
    approver: String,
    #[schema(format = "date-time")]
    at: String,
}

impl VoteView {
    fn of(vote: &Vote) -> Self {
        Self {
            approver: vote.approver.id.clone(),
            at: vote.at.to_string(),
        }
    }
}

/// A call that waits for a person.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct PendingView {
    pub(super) run: String,
    pub(super) call: String,
    agent: String,
    /// The agents from the root of the delegation down to the one that calls.
    path: Vec<String>,
    tool: String,
    severity: Severity,
    #[schema(value_type = String, pattern = "^(approval|question|in_doubt)$")]
    kind: PendingKind,
    /// The arguments as JSON.
    arguments: Value,
    /// The arguments as the canonical text that will run, byte for byte.
    arguments_text: String,
    /// What a decision must name.
    fingerprint: String,
    /// Its first digits, for a person to compare by eye.
    fingerprint_short: String,
    reasons: Vec<ReasonView>,
    quorum: u32,
    approvals: Vec<VoteView>,
    still_needed: u32,
    requester: PersonView,
    #[schema(format = "date-time")]
    requested_at: String,
    #[schema(format = "date-time")]
    expires_at: String,
    /// The tool's question, as canonical text.
    payload_text: Option<String>,
    /// What the caller may do: `approve`, `decline`, `amend`, `answer`, `cancel`, `settle`.
    can: Vec<&'static str>,
    /// The policy's word on whether the caller may approve.
    standing: String,
}

impl PendingView {
    pub(super) fn of(server: &Shared, seen: &Seen) -> Option<Self> {
        Self::new(server, &seen.call, &seen.standing)
    }

    pub(super) fn new(server: &Shared, seen: &CallInSight, standing: &Standing) -> Option<Self> {
        let pending = seen.pending()?;
        let tool = spec_of(server, seen);
        let approvals = u32::try_from(pending.approvals.len()).unwrap_or(u32::MAX);
        Some(Self {
            can: can(&pending, standing),
            standing: standing.why.clone(),
            run: pending.run.to_string(),
            call: pending.call.to_string(),
            path: pending.path.clone(),
            severity: tool
                .as_ref()
                .map_or(Severity::Normal, |tool| Severity::of(tool.spec())),
            kind: pending.kind,
            arguments: pending.arguments.to_value().unwrap_or_default(),
            arguments_text: pending.arguments.to_string(),
            fingerprint: pending.fingerprint.to_string(),
            fingerprint_short: pending.fingerprint.short(),
            reasons: pending.reasons.iter().map(ReasonView::of).collect(),
            quorum: pending.quorum,
            still_needed: pending.quorum.saturating_sub(approvals),
            approvals: pending.approvals.iter().map(VoteView::of).collect(),
            requester: PersonView::of(&pending.requester),
            requested_at: pending.requested_at.to_string(),
            expires_at: pending.expires_at.to_string(),
            payload_text: pending.payload.as_ref().map(Canonical::to_string),
            agent: pending.agent,
            tool: pending.tool,
        })
    }
}

pub(super) fn spec_of(server: &Shared, seen: &CallInSight) -> Option<Arc<dyn DynTool>> {
    let runtime = server.runtime_of(&seen.run)?;
    runtime.tools.get(&seen.call.tool).cloned()
}

fn can(pending: &PendingCall, standing: &Standing) -> Vec<&'static str> {
    let mut can = Vec::new();
    match pending.kind {
        PendingKind::Approval if standing.may_approve && !standing.decided => {
            can.extend(["approve", "decline", "amend"]);
        }
        PendingKind::Question if standing.requester || standing.may_approve => can.push("answer"),
        PendingKind::InDoubt if standing.may_approve => can.push("settle"),
        _ => {}
    }
    if standing.requester && pending.kind != PendingKind::InDoubt {
        can.push("cancel");
    }
    can
}

/// A page of calls that wait.
#[derive(Serialize, ToSchema)]
pub(super) struct PendingPage {
    pub(super) pending: Vec<PendingView>,
    /// Pass it as `after` for the next page; absent on the last one.
    pub(super) next: Option<String>,
}

/// A page of runs.
#[derive(Serialize, ToSchema)]
pub(super) struct RunPage {
    pub(super) runs: Vec<RunView>,
    /// Pass it as `after` for the next page; absent on the last one.
    pub(super) next: Option<String>,
}

/// Everything that an approver needs to decide about a call.
#[derive(Serialize, ToSchema)]
pub(super) struct CallView {
    /// The call while it waits; absent once it does not.
    pub(super) pending: Option<PendingView>,
    /// Where it stands.
    #[schema(value_type = String)]
    pub(super) state: CallState,
    /// What the tool does, as its author says.
    pub(super) description: Option<String>,
    /// JSON Schema (2020-12) of the arguments.
    pub(super) input_schema: Option<Value>,
    /// JSON Schema of the answer, where the tool asks.
    pub(super) resume_schema: Option<Value>,
    /// The conversation before the call; what the model and its user wrote, not the system.
    pub(super) conversation: Vec<SaidView>,
    /// The last call of the tool that people approved, as far as the caller may see it.
    pub(super) previous: Option<PreviousView>,
    /// Whom policies let approve calls of this tool.
    pub(super) approvers: Vec<ApproverRuleView>,
    /// Everything that was decided about it, the earliest first.
    pub(super) decisions: Vec<DecisionView>,
    /// Who amended the arguments last.
    pub(super) amended_by: Option<String>,
    /// What the model was told, once the call is over.
    pub(super) outcome: Option<String>,
}

/// Something that was said in the run before the call.
#[derive(Serialize, ToSchema)]
pub(super) struct SaidView {
    /// `user` or `model`.
    pub(super) who: &'static str,
    pub(super) text: String,
}

/// An earlier call of the same tool.
#[derive(Serialize, ToSchema)]
pub(super) struct PreviousView {
    pub(super) call: String,
    pub(super) arguments_text: String,
    pub(super) requester: String,
    pub(super) approvals: Vec<VoteView>,
}

impl PreviousView {
    pub(super) fn of(seen: &CallInSight) -> Option<Self> {
        let approvals: Vec<_> = seen
            .decisions
            .iter()
            .filter(|stored| stored.decision.kind == crate::approval::DecisionKind::Approve)
            .map(|stored| VoteView::of(&Vote::new(stored.approver.clone(), stored.decision.at)))
            .collect();
        if approvals.is_empty() {
            return None;
        }
        Some(Self {
            call: seen.call.id.to_string(),
            arguments_text: seen.call.arguments.as_ref()?.to_string(),
            requester: seen.run.requester.id.clone(),
            approvals,
        })
    }
}

/// A policy that lets people approve.
#[derive(Serialize, ToSchema)]
pub(super) struct ApproverRuleView {
    /// The policy's id.
    pub(super) policy: String,
    pub(super) title: Option<String>,
    pub(super) why: Option<String>,
    /// Whom it permits, in Cedar's words.
    pub(super) who: String,
    /// Whether it has conditions besides.
    pub(super) conditional: bool,
}

/// A decision on record.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct DecisionView {
    decision: String,
    approver: String,
    #[schema(format = "date-time")]
    at: String,
    reason: Option<String>,
    fingerprint: String,
    /// The amendment, answer or settlement, as canonical text.
    content: Option<String>,
}

impl From<&RecordedDecision> for DecisionView {
    fn from(recorded: &RecordedDecision) -> Self {
        Self {
            decision: recorded.kind.to_string(),
            approver: recorded.approver.clone(),
            at: recorded.at.to_string(),
            reason: recorded.reason.clone(),
            fingerprint: recorded.fingerprint.to_string(),
            content: recorded.content.clone(),
        }
    }
}

/// What became of a decision.
#[derive(Serialize, ToSchema)]
pub(super) struct DecidedView {
    /// Where the call stands now.
    #[schema(value_type = String)]
    pub(super) state: CallState,
    pub(super) decision: DecisionView,
    /// Whether it had been recorded before, and this was a repetition.
    pub(super) repeated: bool,
    /// How many more people must approve.
    pub(super) still_needed: u32,
}

/// An event of a run's journal.
#[derive(Serialize, ToSchema)]
pub(super) struct EntryView {
    pub(super) sequence: i64,
    #[schema(format = "date-time")]
    pub(super) at: String,
    pub(super) event: Value,
    pub(super) previous: Option<String>,
    pub(super) digest: String,
}

pub(super) fn time(at: Timestamp) -> String {
    at.to_string()
}
