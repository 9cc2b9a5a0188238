//! `#[tool(require_approval(when = …, ttl = …, quorum = …))]` acts: on which calls are asked, how
//! many people must approve, and how long they have.

use std::time::Duration;

use agentkit::{
    approval::Verdict,
    call::{CallState, Canonical},
    model::scripted::Reply,
    prelude::*,
};
use serde_json::json;

use crate::desk::*;

/// Move money; much of it, or of a currency that nobody knows, only with approval.
#[tool(require_approval(
    when = |args| match args.currency.as_str() {
        "EUR" => Ok(args.cents > 100),
        other => Err(format!("nobody knows `{other}`")),
    },
    why = "money moves",
    ttl = "2h",
    quorum = 2,
))]
pub async fn transfer(cents: u64, currency: String, #[ctx] ledger: &Ledger) -> u64 {
    ledger.add(format!("transfer {cents} {currency}"));
    cents
}

/// A bank.
#[agent(name = "bank", model = "test/scripted", instructions = "You are a bank.", tools = [transfer])]
pub struct Bank;

async fn bank(world: &World, calls_made: &[(u64, &str)]) -> Hosted<Bank> {
    let mut reply = Reply::calls();
    for (cents, currency) in calls_made {
        reply = reply.call("transfer", &json!({"cents": cents, "currency": currency}));
    }
    world.builder::<Bank>(calls(reply)).await.build().unwrap()
}

#[tokio::test]
async fn a_call_below_the_condition_runs_alone() {
    let world = World::new();
    let bank = bank(&world, &[(100, "EUR")]).await;
    finished(bank.generate(Input::new(alice(), "go")).await.unwrap());
    assert_eq!(world.ledger.effects(), ["transfer 100 EUR"]);
}

#[tokio::test]
async fn a_call_above_it_waits_for_as_many_people_and_as_long_as_declared() {
    let world = World::new();
    let bank = bank(&world, &[(101, "EUR")]).await;
    let run = suspended(bank.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&bank, &run).await;
    assert_eq!(call.quorum, 2);
    assert!(
        call.reasons[0].to_string().contains("money moves"),
        "{:?}",
        call.reasons
    );
    let open = call.expires_at.saturating_since(call.requested_at);
    assert_eq!(open, Duration::from_hours(2));
    bank.decide(&fiona(), approve(&call)).await.unwrap();
    // One of two.
    suspended(bank.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
    bank.decide(&frank(), approve(&call)).await.unwrap();
    finished(bank.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["transfer 101 EUR"]);
}

#[tokio::test]
async fn a_condition_that_fails_means_approval() {
    let world = World::new();
    let bank = bank(&world, &[(1, "EUR"), (1, "XXX")]).await;
    let run = suspended(bank.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&bank, &run).await;
    assert!(call.arguments.as_str().contains("XXX"));
    let why = call.reasons[0].to_string();
    assert!(why.contains("could not be told"), "{why}");
    let states: Vec<_> = stored(&bank, &run)
        .await
        .iter()
        .map(|call| call.state)
        .collect();
    assert_eq!(states, [CallState::Succeeded, CallState::AwaitingApproval]);
}

#[tokio::test]
async fn an_amendment_is_held_against_the_condition_too() {
    let world = World::new();
    let bank = bank(&world, &[(101, "EUR")]).await;
    let mut waiting = suspended(bank.generate(Input::new(alice(), "go")).await.unwrap());
    let BankPending::Transfer(Pending::Approval(transfer)) = waiting.pending.remove(0);
    let call = transfer.call().clone();
    let arguments = Canonical::of(&json!({"cents": 50, "currency": "EUR"})).unwrap();
    let amend = Verdict::Amend {
        arguments,
        reason: None,
    };
    bank.decide(&fiona(), about(&call, amend)).await.unwrap();
    finished(bank.resume_and_wait(&waiting.run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["transfer 50 EUR"]);
}
