use agentkit::{
    approval::{PendingKind, Settlement, Verdict},
    call::{CallState, RunId},
    model::scripted::Reply,
    prelude::*,
    run::DecideError,
};
use serde_json::json;

use crate::desk::*;

/// A run whose instance hangs inside a tool; its lease is made to end, as it does when the
/// instance is dead.
async fn dead(world: &World, tool: &str) -> RunId {
    let desk = world
        .host(calls(Reply::calls().call(tool, &json!({"what": "it"}))))
        .await;
    let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    while world.ledger.effects().is_empty() {
        tokio::task::yield_now().await;
    }
    world.tamper("UPDATE agentkit_runs SET lease_until = 0, lease_epoch = lease_epoch + 1, lease_owner = 'dead'").await;
    running.run().clone()
}

#[tokio::test]
async fn it_is_not_run_again_and_a_person_says_what_happened() {
    for (settlement, told, effects) in [
        (
            Settlement::Succeeded {
                result: "it arrived".into(),
            },
            "Succeeded: it arrived",
            1,
        ),
        (
            Settlement::Failed {
                message: "it is lost".into(),
            },
            "Failed: it is lost",
            1,
        ),
        (Settlement::Retry, "Succeeded: \"sent\"", 2),
    ] {
        let world = World::new();
        let run = dead(&world, "send").await;
        let desk = world.host(echo()).await;
        let waiting = suspended(desk.resume_and_wait(&run).await.unwrap());
        assert_eq!((waiting.pending.len(), waiting.in_doubt.len()), (0, 1));
        let call = &waiting.in_doubt[0];
        assert_eq!(call.kind, PendingKind::InDoubt);
        let error = desk
            .decide(&fiona(), about(call, Verdict::Approve))
            .await
            .unwrap_err();
        assert!(matches!(error, DecideError::WrongKind { .. }), "{error:?}");
        assert_eq!(world.ledger.effects().len(), 1);
        let retry = settlement == Settlement::Retry;
        desk.decide(&fiona(), about(call, Verdict::Settle(settlement)))
            .await
            .unwrap();
        let running = desk.resume(&run).await.unwrap();
        if retry {
            // The first instance still hangs in the tool as well: let both go.
            while world.ledger.effects().len() < 2 {
                tokio::task::yield_now().await;
            }
            world.hold.let_go();
            tokio::task::yield_now().await;
            world.hold.let_go();
        }
        assert_eq!(
            finished(Outcome::<Desk>::of(running.ending().await.unwrap())),
            told
        );
        assert_eq!(world.ledger.effects().len(), effects);
    }
}

#[tokio::test]
async fn an_idempotent_tool_is_started_again_under_the_same_key() {
    let world = World::new();
    let run = dead(&world, "send_once").await;
    let desk = world.host(echo()).await;
    let running = desk.resume(&run).await.unwrap();
    while world.ledger.effects().len() < 2 {
        tokio::task::yield_now().await;
    }
    world.hold.let_go();
    tokio::task::yield_now().await;
    world.hold.let_go();
    assert_eq!(
        finished(Outcome::<Desk>::of(running.ending().await.unwrap())),
        "Succeeded: \"sent\""
    );
    let effects = world.ledger.effects();
    assert_eq!(effects[0], effects[1]);
    // The journal says that it was lost, and that and why it was started again.
    let journal = desk.runtime().store().journal(&run).await.unwrap();
    let refused: Vec<_> = journal
        .iter()
        .map(|entry| entry.body.as_str())
        .filter(|body| body.contains(r#""event":"release_refused""#))
        .collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].contains(r#""state":"in_doubt""#), "{refused:?}");
    assert!(refused[1].contains(r#""state":"ready""#), "{refused:?}");
    assert!(refused[1].contains("idempotent"), "{refused:?}");
}

#[tokio::test]
async fn a_holder_that_was_only_asleep_writes_nothing() {
    let world = World::new();
    let run = dead(&world, "send").await;
    let desk = world.host(echo()).await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    world.hold.let_go();
    for _ in 0..50 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        assert_eq!(stored(&desk, &run).await[0].state, CallState::InDoubt);
    }
}
