use agentkit::{
    agent::GenerateError,
    model::{ModelError, ModelErrorKind, scripted::Reply},
    prelude::*,
    run::RunError,
    store::RunStatus,
};
use serde_json::json;

use crate::desk::*;

#[tokio::test]
async fn a_stream_that_ends_inside_a_tool_call_counts_for_nothing() {
    let world = World::new();
    let cut = Reply::calls()
        .call("pay", &json!({"to": "bob", "cents": 5}))
        .ends_early_after(2);
    let desk = world.host(calls(cut)).await;
    let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let run = running.run().clone();
    let error = running.ending().await.unwrap_err();
    let RunError::Model { source, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(source.kind(), ModelErrorKind::Truncated);
    assert!(stored(&desk, &run).await.is_empty());
    let record = desk.runtime().store().run(&run).await.unwrap();
    assert_eq!(record.status, RunStatus::Interrupted);
    // The next model answers, and the run goes on.
    let desk = world.host(pays("bob", 5)).await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
}

#[tokio::test]
async fn a_tool_that_ran_before_the_model_failed_does_not_run_again() {
    let world = World::new();
    let fails = Reply::fails(ModelError::new(ModelErrorKind::Unavailable, "down"));
    let desk = world.host(pays("bob", 5).reply(fails)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let error = desk.resume_and_wait(&run).await.err().unwrap();
    assert!(matches!(error, RunError::Model { .. }), "{error:?}");
    assert_eq!(
        finished(desk.resume_and_wait(&run).await.unwrap()),
        "Succeeded: \"paid bob\""
    );
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn generate_names_the_run_that_can_be_resumed() {
    let world = World::new();
    let fails = Reply::fails(ModelError::new(ModelErrorKind::Authentication, "no key"));
    let desk = world.host(calls(fails)).await;
    let error = desk
        .generate(Input::new(alice(), "go"))
        .await
        .err()
        .unwrap();
    let GenerateError::Run(RunError::Model { run, .. }) = error else {
        panic!("{error:?}")
    };
    assert_eq!(finished(desk.resume_and_wait(&run).await.unwrap()), "");
}

#[tokio::test]
async fn dropping_the_stream_changes_nothing() {
    let world = World::new();
    let desk = world
        .host(calls(Reply::calls().call("send", &json!({"what": "it"}))))
        .await;
    let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let run = running.run().clone();
    while world.ledger.effects().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(running);
    world.hold.let_go();
    assert_eq!(
        finished(desk.resume_and_wait(&run).await.unwrap()),
        "Succeeded: \"sent\""
    );
    assert_eq!(world.ledger.effects(), ["send it"]);
}
