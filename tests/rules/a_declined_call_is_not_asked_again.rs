use agentkit::{
    call::{CallState, RunId},
    model::scripted::Reply,
    prelude::*,
};
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

/// Three calls are declined, one of them by a person; the one over 6 waits.
async fn three_declined_and_the_other_asked(desk: &Hosted<Desk>, run: &RunId) {
    let calls = stored(desk, run).await;
    let states: Vec<_> = calls.iter().map(|call| call.state).collect();
    let expected = [
        CallState::Declined,
        CallState::Declined,
        CallState::Declined,
        CallState::AwaitingApproval,
    ];
    assert_eq!(states, expected);
    assert!(the_one(desk, run).await.arguments.as_str().contains('6'));
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
    three_declined_and_the_other_asked(&desk, &run).await;
}

#[tokio::test]
async fn nor_is_what_the_model_asked_for_where_a_person_amended_it_first() {
    let world = World::new();
    let pay = |cents: u64| Reply::calls().call("pay", &json!({"to": "bob", "cents": cents}));
    // The same again, what it was amended to, and another one.
    let model = pays("bob", 5).reply(pay(5)).reply(pay(4)).reply(pay(6));
    let desk = world.host(model).await;
    let (run, call) = stopped(&desk).await;
    let less = amend(&call, &json!({"to": "bob", "cents": 4}));
    desk.decide(&fiona(), less).await.unwrap();
    let amended = the_one(&desk, &run).await;
    desk.decide(&frank(), decline(&amended, "no"))
        .await
        .unwrap();
    suspended(desk.resume_and_wait(&run).await.unwrap());
    three_declined_and_the_other_asked(&desk, &run).await;
}
