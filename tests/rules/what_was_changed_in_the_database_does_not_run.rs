use agentkit::{gate::RequireApproval, model::scripted::Reply, prelude::*, run::DecideError};
use serde_json::json;

use crate::desk::*;

const CHANGE: &str =
    "UPDATE agentkit_calls SET arguments = replace(arguments, '\"cents\":5', '\"cents\":9')";

#[tokio::test]
async fn between_request_and_approval() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    world.tamper(CHANGE).await;
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(matches!(error, DecideError::Tampered { .. }), "{error:?}");
    // It still waits, and can be declined.
    desk.decide(&fiona(), decline(&call, "who was that?"))
        .await
        .unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn between_approval_and_execution() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    world.tamper(CHANGE).await;
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(
        text.starts_with("Denied: refused: the stored call was changed"),
        "{text}"
    );
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn a_state_that_was_set_by_hand_is_no_approval() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, _) = stopped(&desk).await;
    for state in ["approved", "ready"] {
        world
            .tamper(&format!("UPDATE agentkit_calls SET state = '{state}'"))
            .await;
        suspended(desk.resume_and_wait(&run).await.unwrap());
        assert!(world.ledger.effects().is_empty(), "{state}");
    }
}

#[tokio::test]
async fn arguments_in_another_form_are_not_read() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (_, call) = stopped(&desk).await;
    world
        .tamper("UPDATE agentkit_calls SET arguments = '{\"to\":\"bob\", \"cents\":5}'")
        .await;
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(error.to_string().contains("store"), "{error:?}");
}

/// A vote that was copied from another call, or from an earlier occasion, counts for nothing.
#[tokio::test]
async fn a_vote_that_was_moved_does_not_count() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, _) = stopped(&desk).await;
    world
        .tamper(&format!(
            "INSERT INTO agentkit_decisions (call_id, nonce, approver_id, kind, fingerprint, approver, decided_at)
             SELECT id, nonce, 'fiona', 'approve', {},
                    '{{\"id\":\"fiona\",\"authenticated_by\":\"x\"}}', created_at FROM agentkit_calls",
            world.database.zeros()
        ))
        .await;
    world
        .tamper("UPDATE agentkit_calls SET state = 'approved'")
        .await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}

/// How many people must approve is known from the tool and the run, not from the row alone.
#[tokio::test]
async fn a_demand_that_was_removed_is_still_made() {
    // What the run demands of a tool that demands nothing itself.
    let world = World::new();
    let desk = world
        .host(calls(Reply::calls().call("balance", &json!({"of": "bob"}))))
        .await;
    let input = Input::new(alice(), "go").require_approval(RequireApproval::On);
    let run = suspended(desk.generate(input).await.unwrap()).run;
    approved_by_hand(&world).await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());

    // Two approvers for these arguments, of whom one voted.
    let world = World::new();
    let vault = world
        .builder::<Vault>(calls(
            Reply::calls().call("withdraw", &json!({"cents": 500})),
        ))
        .await
        .build()
        .unwrap();
    let run = suspended(vault.generate(Input::new(alice(), "go")).await.unwrap()).run;
    approved_by_hand(&world).await;
    suspended(vault.resume_and_wait(&run).await.unwrap());
    let call = the_one(&vault, &run).await;
    vault.decide(&fiona(), approve(&call)).await.unwrap();
    approved_by_hand(&world).await;
    suspended(vault.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}

/// Sets the state and takes every demand out of the gate's record.
async fn approved_by_hand(world: &World) {
    for demanded in [1, 2] {
        let removed = format!(
            "UPDATE agentkit_calls SET state = 'approved', quorum = 0,
             gate = replace(gate, '\"demanded\":{demanded}', '\"demanded\":0')"
        );
        world.tamper(&removed).await;
    }
}

/// Take money out; much of it only with two people's approval.
#[tool(require_approval(when = |args| args.cents > 100, quorum = 2))]
pub async fn withdraw(cents: u64, #[ctx] ledger: &Ledger) -> u64 {
    ledger.add(format!("withdraw {cents}"));
    cents
}

/// A vault.
#[agent(name = "vault", model = "test/scripted", instructions = "You are a vault.", tools = [withdraw])]
pub struct Vault;
