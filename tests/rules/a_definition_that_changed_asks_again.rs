use agentkit::{
    agent::AgentDefinition, call::CallState, prelude::*, run::DecideError, tool::erase,
};

use crate::{
    desk::*,
    team::{AnyCall, NoAnswer},
};

/// The desk of another version: the same name and tools, another text.
struct NextDesk;

impl Agent for NextDesk {
    type Pending = AnyCall;
    type Resume = NoAnswer;

    fn definition() -> AgentDefinition {
        AgentDefinition::new(
            "desk",
            "test/scripted",
            "You are a desk of the next version.",
        )
        .tools([erase::<pay>(), erase::<balance>()])
    }
}

#[tokio::test]
async fn what_was_approved_for_one_version_does_not_run_in_another() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let next: Hosted<NextDesk> = world.builder(echo()).await.build().unwrap();
    suspended(next.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
    let again = the_one(&next, &run).await;
    let why = again.reasons[0].to_string();
    assert!(why.contains("the agent's definition changed"), "{why}");
    assert!(again.approvals.is_empty());
    let error = next.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(
        matches!(error, DecideError::FingerprintMismatch { .. }),
        "{error:?}"
    );
    next.decide(&fiona(), approve(&again)).await.unwrap();
    finished(next.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
    assert_eq!(stored(&next, &run).await[0].state, CallState::Succeeded);
}
