use agentkit::{model::scripted::Reply, prelude::*};
use serde_json::json;

use crate::desk::*;

fn three() -> Reply {
    Reply::calls()
        .call("balance", &json!({"of": "a"}))
        .call("pay", &json!({"to": "bob", "cents": 5}))
        .call("balance", &json!({"of": "c"}))
}

#[tokio::test]
async fn the_others_run_at_once_and_results_keep_the_order_of_the_calls() {
    let world = World::new();
    let desk = world.host(calls(three())).await;
    let (run, call) = stopped(&desk).await;
    let mut effects = world.ledger.effects();
    effects.sort();
    assert_eq!(effects, ["balance a", "balance c"]);
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(
        text,
        "Succeeded: 42\nSucceeded: \"paid bob\"\nSucceeded: 42"
    );
}

#[tokio::test]
async fn results_are_told_as_they_come_before_the_run_is_suspended() {
    let world = World::new();
    let desk = world.host(calls(three())).await;
    let mut running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let (mut pending, mut ended) = (0, 0);
    while let Some(event) = running.next().await {
        match event {
            RunEvent::Pending(call) => {
                // The row is there before anyone is told.
                assert_eq!(the_one(&desk, &call.run).await, *call);
                pending += 1;
            }
            RunEvent::ToolEnded { .. } => ended += 1,
            _ => {}
        }
    }
    assert_eq!((pending, ended), (1, 2));
}

#[tokio::test]
async fn two_gated_calls_are_decided_in_any_order() {
    let world = World::new();
    let reply = Reply::calls()
        .call("pay", &json!({"to": "bob", "cents": 5}))
        .call("pay", &json!({"to": "eve", "cents": 6}));
    let desk = world.host(calls(reply)).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let two = waiting(&desk, &run).await;
    desk.decide(&fiona(), decline(&two[1], "not her"))
        .await
        .unwrap();
    // One is decided, one waits: the model is not asked yet.
    suspended(desk.resume_and_wait(&run).await.unwrap());
    desk.decide(&fiona(), approve(&two[0])).await.unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(
        text,
        "Succeeded: \"paid bob\"\nDeclined: declined by a person, who says: not her"
    );
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn the_same_tool_asks_twice_and_answers_reach_the_right_call() {
    use agentkit::{approval::Verdict, call::Canonical};
    let world = World::new();
    let reply = Reply::calls()
        .call("choose", &json!({}))
        .call("choose", &json!({}));
    let desk = world.host(calls(reply)).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let two = waiting(&desk, &run).await;
    for (call, seat) in [(&two[1], 2), (&two[0], 1)] {
        let data = Canonical::of(&Seat { seat }).unwrap();
        desk.decide(&alice(), about(call, Verdict::Answer { data }))
            .await
            .unwrap();
    }
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(text, "Succeeded: 1\nSucceeded: 2");
}

#[tokio::test]
async fn reused_ids_of_the_provider_do_not_mix_calls_up() {
    let world = World::new();
    let reply = Reply::calls()
        .call("pay", &json!({"to": "bob", "cents": 5}))
        .with_provider_id("same")
        .call("pay", &json!({"to": "eve", "cents": 6}))
        .with_provider_id("same");
    let desk = world.host(calls(reply)).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let two = waiting(&desk, &run).await;
    assert_ne!(two[0].call, two[1].call);
    desk.decide(&fiona(), decline(&two[0], "no")).await.unwrap();
    desk.decide(&fiona(), approve(&two[1])).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay eve 6"]);
}
