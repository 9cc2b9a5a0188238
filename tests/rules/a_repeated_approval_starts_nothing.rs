use agentkit::{
    call::CallState, gate::RequireApproval, model::scripted::Reply, prelude::*, run::DecideError,
};
use serde_json::json;

use crate::desk::*;

/// A run in which an approved call is executing and hangs.
async fn executing(world: &World) -> (Hosted<Desk>, agentkit::run::Running, Decision) {
    let desk = world
        .host(calls(Reply::calls().call("send", &json!({"what": "it"}))))
        .await;
    let input = Input::new(alice(), "go").require_approval(RequireApproval::On);
    let run = suspended(desk.generate(input).await.unwrap()).run;
    let decision = approve(&the_one(&desk, &run).await);
    desk.decide(&fiona(), decision.clone()).await.unwrap();
    let running = desk.resume(&run).await.unwrap();
    while world.ledger.effects().is_empty() {
        tokio::task::yield_now().await;
    }
    (desk, running, decision)
}

#[tokio::test]
async fn while_the_call_is_executing() {
    let world = World::new();
    let (desk, running, decision) = executing(&world).await;
    let again = desk.decide(&fiona(), decision.clone()).await.unwrap();
    assert_eq!((again.repeated, again.state), (true, CallState::Executing));
    // Somebody else, in another process: the recorded decision, and nothing starts.
    let other = world.host(echo()).await;
    let again = other.decide(&frank(), decision.clone()).await.unwrap();
    assert_eq!(
        (again.repeated, again.decision.approver.as_str()),
        (true, "fiona")
    );
    let error = other
        .decide(&frank(), with(&decision, "no"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, DecideError::AlreadyDecided { .. }),
        "{error:?}"
    );
    world.hold.let_go();
    running.ending().await.unwrap();
    assert_eq!(world.ledger.effects(), ["send it"]);
}

#[tokio::test]
async fn after_the_instance_died_inside_the_tool() {
    let world = World::new();
    let (_desk, running, decision) = executing(&world).await;
    world
        .tamper("UPDATE agentkit_runs SET lease_until = 0, lease_epoch = lease_epoch + 1, lease_owner = 'dead'")
        .await;
    let run = running.run().clone();
    let desk = world.host(echo()).await;
    // The old approval, before anyone took the run over and after.
    assert!(
        desk.decide(&fiona(), decision.clone())
            .await
            .unwrap()
            .repeated
    );
    let waiting = suspended(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(waiting.in_doubt.len(), 1);
    let error = desk.decide(&fiona(), decision.clone()).await.unwrap_err();
    assert!(
        matches!(error, DecideError::FingerprintMismatch { .. }),
        "{error:?}"
    );
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["send it"]);
}

fn with(decision: &Decision, reason: &str) -> Decision {
    let mut decision = decision.clone();
    decision.verdict = agentkit::approval::Verdict::Decline {
        reason: Some(reason.to_owned()),
    };
    decision
}
