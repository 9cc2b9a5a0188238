use std::sync::{Arc, Mutex};

use agentkit::{
    gate::RequireApproval,
    model::{
        ModelRequest,
        scripted::{Reply, ScriptedModel},
    },
    prelude::*,
    run::FinishReason,
};
use serde_json::json;

use crate::{desk::*, team::hands};

const STEPS: u32 = 2;

/// Looks up balances, but secret ones only with approval.
#[agent(
    name = "careful",
    model = "test/scripted",
    instructions = "You are careful.",
    tools = [balance],
    require_approval(when = |call| Ok(call.arguments["of"] == "secret")),
    max_steps = STEPS,
    max_tokens = 1_000_000,
    max_time = "10m",
    temperature = 0.25,
    max_output_tokens = 512,
)]
pub struct Careful;

/// Hands everything on.
#[agent(name = "boss", model = "test/scripted", instructions = "x", agents = [Careful])]
pub struct Boss;

/// Asks for everything.
#[agent(name = "strict", model = "test/scripted", instructions = "x", tools = [balance], require_approval)]
pub struct Strict;

fn looks_up(of: &str) -> Reply {
    Reply::calls().call("balance", &json!({ "of": of }))
}

/// Never answers, but calls on; says what it was asked.
fn restless() -> (ScriptedModel, Arc<Mutex<Vec<ModelRequest>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    let model = ScriptedModel::new().answering(move |request| {
        asked.lock().unwrap().push(request.clone());
        looks_up("public")
    });
    (model, seen)
}

async fn reason<A: Agent>(agent: &Hosted<A>, input: Input) -> FinishReason {
    match agent.generate(input).await.unwrap() {
        Outcome::Finished { reason, .. } => reason,
        _ => panic!("waits"),
    }
}

#[tokio::test]
async fn budgets_and_settings_of_the_model_are_those_of_the_declaration() {
    let world = World::new();
    let (model, seen) = restless();
    let builder = world.builder::<Careful>(model).await;
    let careful = builder.build().unwrap();
    assert_eq!(
        reason(&careful, Input::new(alice(), "go")).await,
        FinishReason::StepLimit
    );
    let requests = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.temperature, Some(0.25));
        assert_eq!(request.max_output_tokens, Some(512));
    }
    // A run may say otherwise.
    let input = Input::new(alice(), "go").max_steps(4);
    assert_eq!(reason(&careful, input).await, FinishReason::StepLimit);
    assert_eq!(seen.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn a_run_below_keeps_the_lower_budget() {
    for (above, expected) in [(None, 2), (Some(1), 1)] {
        let world = World::new();
        let (model, seen) = restless();
        let builder = world.builder::<Boss>(calls(hands("careful", "look"))).await;
        let boss = builder.model_of("careful", model).build().unwrap();
        let mut input = Input::new(alice(), "go");
        if let Some(steps) = above {
            input = input.max_steps(steps);
        }
        boss.generate(input).await.unwrap();
        assert_eq!(seen.lock().unwrap().len(), expected);
    }
}

#[tokio::test]
async fn the_gate_of_an_agent_holds_in_every_run_and_after_a_restart() {
    let world = World::new();
    let both = || looks_up("public").call("balance", &json!({"of": "secret"}));
    let careful = world
        .builder::<Careful>(calls(both()))
        .await
        .build()
        .unwrap();
    // A run cannot ask for less.
    let input = Input::new(alice(), "go").require_approval(RequireApproval::Off);
    let run = suspended(careful.generate(input).await.unwrap()).run;
    assert_eq!(world.ledger.effects(), ["balance public"]);
    let call = the_one(&careful, &run).await;
    drop(careful);
    // The condition is there again in another process.
    let model = calls(looks_up("public"));
    let careful = world.builder::<Careful>(model).await.build().unwrap();
    careful.decide(&fiona(), approve(&call)).await.unwrap();
    finished(careful.resume_and_wait(&run).await.unwrap());
    let effects = ["balance public", "balance secret", "balance public"];
    assert_eq!(world.ledger.effects(), effects);

    // Below another agent too, whose runs ask for nothing.
    let world = World::new();
    let builder = world.builder::<Boss>(calls(hands("careful", "look"))).await;
    let boss = builder.model_of("careful", calls(both())).build().unwrap();
    let run = suspended(boss.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&boss, &run).await;
    assert_eq!(call.arguments.as_str(), r#"{"of":"secret"}"#);
    assert_eq!(world.ledger.effects(), ["balance public"]);

    let world = World::new();
    let strict = world.builder::<Strict>(calls(looks_up("public"))).await;
    let strict = strict.build().unwrap();
    suspended(strict.generate(Input::new(alice(), "go")).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}
