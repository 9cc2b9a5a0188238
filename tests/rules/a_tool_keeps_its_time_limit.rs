//! `#[tool(timeout = …)]` acts: a call that takes longer is stopped and has failed, and the run
//! goes on.

use std::time::Duration;

use agentkit::{call::CallState, model::scripted::Reply, prelude::*};
use serde_json::json;

use crate::desk::*;

/// Takes as long as it is told.
#[tool(timeout = "1s")]
pub async fn slow(millis: u64, #[ctx] ledger: &Ledger) -> &'static str {
    ledger.add("begins");
    tokio::time::sleep(Duration::from_millis(millis)).await;
    ledger.add("ends");
    "done"
}

/// An agent.
#[agent(name = "slow", model = "test/scripted", instructions = "You are slow.", tools = [slow])]
pub struct Slow;

async fn outcome(world: &World, millis: u64) -> (String, CallState) {
    let model = calls(Reply::calls().call("slow", &json!({"millis": millis})));
    let slow = world.builder::<Slow>(model).await.build().unwrap();
    let ending = slow.generate(Input::new(alice(), "go")).await.unwrap();
    let Outcome::Finished { run, text, .. } = ending else {
        panic!("it waits")
    };
    (text, stored(&slow, &run).await[0].state)
}

#[tokio::test]
async fn a_call_that_takes_longer_is_stopped_and_the_model_is_told() {
    let world = World::new();
    let (text, state) = outcome(&world, 60_000).await;
    assert!(text.contains("longer than 1s"), "{text}");
    assert!(text.contains("not known"), "{text}");
    assert_eq!(state, CallState::Failed);
    assert_eq!(world.ledger.effects(), ["begins"]);
}

#[tokio::test]
async fn a_call_in_time_succeeds() {
    let world = World::new();
    let (text, state) = outcome(&world, 10).await;
    assert!(text.contains("done"), "{text}");
    assert_eq!(state, CallState::Succeeded);
    assert_eq!(world.ledger.effects(), ["begins", "ends"]);
}
