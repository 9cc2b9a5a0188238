//! What this runtime hands to policies as `context.session`.
//!
//! Only what it knows. A policy that reads another fact does not load ([`SESSION_FACTS`] goes into
//! the policy settings), so no cap is asked about with a number that nobody counted.

use agentkit_policy::SessionFacts;

use crate::store::RunRecord;

/// The facts that [`session_facts`] holds: whoever computes more names them here.
pub(crate) const SESSION_FACTS: [&str; 3] = ["id", "agent", "started_at"];

/// The facts about a run; it is its own session where there is no thread.
pub(super) fn session_facts(run: &RunRecord) -> SessionFacts {
    SessionFacts::new()
        .set("id", run.id.as_str())
        .set("agent", run.agent.as_str())
        .set_time("started_at", run.created_at.as_micros())
}
