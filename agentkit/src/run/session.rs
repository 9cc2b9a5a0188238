//! What this runtime hands to policies as `context.session`.
//!
//! Only what it knows. A policy that reads another fact does not load ([`SESSION_FACTS`] goes into
//! the policy settings), so no cap is asked about with a number that nobody counted.

use agentkit_policy::SessionFacts;

use crate::store::RunRecord;

/// The facts that [`session_facts`] holds: whoever computes more names them here.
pub(crate) const SESSION_FACTS: [&str; 3] = ["id", "agent", "depth"];

/// The facts about a run. Its session is the thread, or the root run where there is no thread.
pub(super) fn session_facts(run: &RunRecord) -> SessionFacts {
    let id = run.thread.as_deref().unwrap_or(run.root.as_str());
    let above = run.path.len().saturating_sub(1);
    SessionFacts::new()
        .set("id", id)
        .set("agent", run.agent.as_str())
        .set("depth", i64::try_from(above).unwrap_or(i64::MAX))
}
