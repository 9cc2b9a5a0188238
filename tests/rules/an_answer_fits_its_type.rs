//! `generate_as::<T>`: the last answer of a run is a `T`, asked for again within the step budget,
//! and held to its type across suspensions and restarts.

use agentkit::{
    agent::OutcomeAs,
    model::{
        Message,
        scripted::{Reply, ScriptedModel},
    },
    prelude::*,
    run::FinishReason,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::desk::*;

/// What the desk reports.
#[derive(Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    paid: u64,
    #[serde(default)]
    note: Option<String>,
}

const FITS: &str = r#"{"paid": 5}"#;

fn value<A: Agent>(outcome: OutcomeAs<A, Report>) -> Report {
    match outcome {
        OutcomeAs::Finished { value, .. } => value,
        OutcomeAs::Unfinished { text, reason, .. } => panic!("{reason:?}: {text}"),
        OutcomeAs::Suspended(_) => panic!("it waits"),
        _ => unreachable!(),
    }
}

fn expected() -> Report {
    Report {
        paid: 5,
        note: None,
    }
}

#[tokio::test]
async fn the_model_is_told_the_schema_and_its_answer_is_typed() {
    let world = World::new();
    let model = ScriptedModel::new().answering(|request| {
        let told = request.instructions.clone().unwrap_or_default();
        assert!(told.starts_with("You are a desk."), "{told}");
        assert!(told.contains(r#""paid""#), "{told}");
        Reply::text(FITS)
    });
    let desk = world.host(model).await;
    let outcome = desk.generate_as(Input::new(alice(), "report")).await;
    assert_eq!(value(outcome.unwrap()), expected());
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong() {
    let world = World::new();
    let model = ScriptedModel::new()
        .reply(Reply::text(r#"{"paid": "five", "more": 1}"#))
        .answering(|request| {
            let Some(Message::User(user)) = request.messages.last() else {
                panic!("nobody said what is wrong: {:?}", request.messages)
            };
            assert!(
                user.text.contains("$.paid") && user.text.contains("$.more"),
                "{}",
                user.text
            );
            Reply::text(FITS)
        });
    let desk = world.host(model).await;
    let outcome = desk.generate_as(Input::new(alice(), "report")).await;
    assert_eq!(value(outcome.unwrap()), expected());
}

#[tokio::test]
async fn asking_again_ends_with_the_step_budget() {
    let world = World::new();
    let model = ScriptedModel::new().answering(|_| Reply::text("no JSON"));
    let desk = world.host(model).await;
    let input = Input::new(alice(), "report").max_steps(3);
    let outcome: OutcomeAs<Desk, Report> = desk.generate_as(input).await.unwrap();
    let OutcomeAs::Unfinished { run, reason, .. } = outcome else {
        panic!("it fits")
    };
    assert_eq!(reason, FinishReason::StepLimit);
    assert_eq!(desk.runtime().store().run(&run).await.unwrap().step, 3);
}

#[tokio::test]
async fn the_form_holds_across_a_suspension_and_a_restart() {
    let world = World::new();
    let asks = Reply::calls().call("pay", &json!({"to": "bob", "cents": 5}));
    let desk = world.host(ScriptedModel::new().reply(asks)).await;
    let outcome: OutcomeAs<Desk, Report> =
        desk.generate_as(Input::new(alice(), "go")).await.unwrap();
    let OutcomeAs::Suspended(waiting) = outcome else {
        panic!("it does not wait")
    };
    let call = the_one(&desk, &waiting.run).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    drop(desk);

    // Another process, whose model answers in prose first.
    let model = ScriptedModel::new().answering(|request| match request.messages.last() {
        Some(Message::User(_)) => Reply::text(FITS),
        _ => Reply::text("Paid."),
    });
    let desk = world.host(model).await;
    let outcome = desk.resume_as::<Report>(&waiting.run).await.unwrap();
    assert_eq!(value(outcome), expected());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
    // And who comes later reads the same.
    let again = desk.resume_as::<Report>(&waiting.run).await.unwrap();
    assert_eq!(value(again), expected());
}
