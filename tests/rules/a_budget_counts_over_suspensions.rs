use std::time::Duration;

use agentkit::{
    model::{Usage, scripted::Reply},
    prelude::*,
    run::FinishReason,
};
use serde_json::json;

use crate::{desk::*, team::*};

fn reason<A: Agent>(outcome: &Outcome<A>) -> FinishReason {
    match outcome {
        Outcome::Finished { reason, .. } => *reason,
        _ => panic!("not finished"),
    }
}

fn used(tokens: u64) -> Usage {
    let mut usage = Usage::default();
    usage.input_tokens = tokens - 1;
    usage.output_tokens = 1;
    usage
}

#[tokio::test]
async fn tokens_before_and_after_an_approval() {
    let world = World::new();
    let pay = Reply::calls().call("pay", &json!({"to": "bob", "cents": 5}));
    let look = || {
        Reply::calls()
            .call("balance", &json!({"of": "a"}))
            .usage(used(60))
    };
    let desk = world
        .host(calls(pay.usage(used(60))).reply(look()).reply(look()))
        .await;
    let input = Input::new(alice(), "go").max_tokens(100);
    let run = suspended(desk.generate(input).await.unwrap()).run;
    let call = the_one(&desk, &run).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let outcome = desk.resume_and_wait(&run).await.unwrap();
    assert_eq!(reason(&outcome), FinishReason::TokenLimit);
    assert_eq!(world.ledger.effects(), ["pay bob 5", "balance a"]);
    // It stays what it was.
    let again = desk.resume_and_wait(&run).await.unwrap();
    assert_eq!(reason(&again), FinishReason::TokenLimit);
}

#[tokio::test]
async fn tokens_of_sub_agents() {
    let world = World::new();
    let mut team = Team::default();
    team.lead = calls(hands("clerk", "look").usage(used(10)));
    let look = || {
        Reply::calls()
            .call("balance", &json!({"of": "a"}))
            .usage(used(60))
    };
    team.clerk = calls(look()).reply(look()).reply(look());
    let lead = team.host(&world).await;
    let input = Input::new(alice(), "go").max_tokens(100);
    let outcome = lead.generate(input).await.unwrap();
    assert_eq!(reason(&outcome), FinishReason::TokenLimit);
    assert_eq!(world.ledger.effects().len(), 2);
}

#[tokio::test]
async fn time_that_was_worked_and_not_time_that_was_waited() {
    let world = World::new();
    let desk = world
        .host(pays("bob", 5).reply(Reply::calls().call("stoppable", &json!({}))))
        .await;
    let input = Input::new(alice(), "go").max_time(Duration::from_millis(1500));
    let run = suspended(desk.generate(input).await.unwrap()).run;
    let call = the_one(&desk, &run).await;
    // The run waits for longer than it may be worked on.
    tokio::time::sleep(Duration::from_millis(1600)).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let outcome = desk.resume_and_wait(&run).await.unwrap();
    assert_eq!(reason(&outcome), FinishReason::TimeLimit);
    // The tool was asked to stop, and what it reported is recorded.
    assert_eq!(world.ledger.effects(), ["pay bob 5", "stoppable"]);
    let calls = stored(&desk, &run).await;
    assert_eq!(calls[1].outcome.as_deref(), Some("\"stopped half-way\""));
    // What was worked before the suspension counts.
    let worked = desk.runtime().store().run(&run).await.unwrap().worked;
    assert!(worked >= Duration::from_millis(1400), "{worked:?}");
}

#[tokio::test]
async fn no_more_calls_at_once_than_allowed() {
    let world = World::new();
    let mut reply = Reply::calls();
    for number in 0..6 {
        reply = reply.call("counted", &json!({"number": number}));
    }
    let builder = world.builder::<Desk>(calls(reply)).await;
    let desk = builder.concurrency(2).build().unwrap();
    finished(desk.generate(Input::new(alice(), "go")).await.unwrap());
    let most = world
        .ledger
        .effects()
        .iter()
        .map(|effect| effect.parse::<u32>().unwrap())
        .max();
    assert_eq!((most, world.ledger.effects().len()), (Some(2), 6));
}
