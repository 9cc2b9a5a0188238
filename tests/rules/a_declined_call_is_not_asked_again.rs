use agentkit::{call::CallState, model::scripted::Reply};
use serde_json::json;

use crate::desk::*;

#[tokio::test]
async fn the_model_receives_the_reason() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), decline(&call, "  not this month "))
        .await
        .unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(
        text,
        "Declined: declined by a person, who says: not this month"
    );
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn a_blank_reason_is_none() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), decline(&call, " \n ")).await.unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(text, "Declined: declined by a person, who gave no reason");
}

#[tokio::test]
async fn the_same_call_is_declined_at_once_and_another_one_is_asked() {
    let world = World::new();
    let same = || Reply::calls().call("pay", &json!({"cents": 5, "to": "bob"}));
    let other = Reply::calls().call("pay", &json!({"to": "bob", "cents": 6}));
    let desk = world
        .host(pays("bob", 5).reply(same()).reply(same()).reply(other))
        .await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), decline(&call, "no")).await.unwrap();
    suspended(desk.resume_and_wait(&run).await.unwrap());
    let states: Vec<_> = stored(&desk, &run)
        .await
        .iter()
        .map(|call| call.state)
        .collect();
    let expected = [
        CallState::Declined,
        CallState::Declined,
        CallState::Declined,
        CallState::AwaitingApproval,
    ];
    assert_eq!(states, expected);
    assert!(the_one(&desk, &run).await.arguments.as_str().contains('6'));
}
