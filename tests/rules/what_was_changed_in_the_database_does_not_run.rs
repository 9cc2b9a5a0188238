use agentkit::run::DecideError;

use crate::desk::*;

const CHANGE: &str =
    "UPDATE agentkit_calls SET arguments = replace(arguments, '\"cents\":5', '\"cents\":9')";

#[tokio::test]
async fn between_request_and_approval() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    world.tamper(CHANGE).await;
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(matches!(error, DecideError::Tampered { .. }), "{error:?}");
    // It still waits, and can be declined.
    desk.decide(&fiona(), decline(&call, "who was that?"))
        .await
        .unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn between_approval_and_execution() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    world.tamper(CHANGE).await;
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(
        text.starts_with("Denied: refused: the stored call was changed"),
        "{text}"
    );
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn a_state_that_was_set_by_hand_is_no_approval() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, _) = stopped(&desk).await;
    for state in ["approved", "ready"] {
        world
            .tamper(&format!("UPDATE agentkit_calls SET state = '{state}'"))
            .await;
        suspended(desk.resume_and_wait(&run).await.unwrap());
        assert!(world.ledger.effects().is_empty(), "{state}");
    }
}

#[tokio::test]
async fn arguments_in_another_form_are_not_read() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (_, call) = stopped(&desk).await;
    world
        .tamper("UPDATE agentkit_calls SET arguments = '{\"to\":\"bob\", \"cents\":5}'")
        .await;
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(error.to_string().contains("store"), "{error:?}");
}

/// A vote that was copied from another call, or from an earlier occasion, counts for nothing.
#[tokio::test]
async fn a_vote_that_was_moved_does_not_count() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, _) = stopped(&desk).await;
    world
        .tamper(
            "INSERT INTO agentkit_decisions (call_id, nonce, approver_id, kind, fingerprint, approver, decided_at)
             SELECT id, nonce, 'fiona', 'approve', zeroblob(32),
                    '{\"id\":\"fiona\",\"authenticated_by\":\"x\"}', created_at FROM agentkit_calls",
        )
        .await;
    world
        .tamper("UPDATE agentkit_calls SET state = 'approved'")
        .await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}
