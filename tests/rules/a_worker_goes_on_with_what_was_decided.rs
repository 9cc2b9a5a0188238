use std::time::Duration;

use agentkit::{
    call::{CallState, RunId},
    model::scripted::Reply,
    prelude::*,
    store::RunStatus,
};
use serde_json::json;

use crate::{desk::*, team::*};

async fn over<A: Agent>(desk: &Hosted<A>, run: &RunId) {
    for _ in 0..2000 {
        if desk.runtime().store().run(run).await.unwrap().status == RunStatus::Finished {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody went on with the run");
}

#[tokio::test]
async fn approved_or_declined_and_nobody_resumes_it() {
    for yes in [true, false] {
        let world = World::new();
        let desk = world.host(pays("bob", 5)).await;
        let (run, call) = stopped(&desk).await;
        // The worker is another process; whoever decides does nothing else.
        let other = world.host(echo()).await;
        let _worker = other.worker(Duration::from_millis(20));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let still = desk.runtime().store().run(&run).await.unwrap();
        assert_eq!(still.status, RunStatus::Suspended, "nothing to go on with");
        let decision = if yes {
            approve(&call)
        } else {
            decline(&call, "no")
        };
        desk.decide(&fiona(), decision).await.unwrap();
        over(&desk, &run).await;
        assert_eq!(world.ledger.effects().len(), usize::from(yes));
    }
}

#[tokio::test]
async fn two_workers_run_it_once() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    let other = world.host(echo()).await;
    let _workers = [
        desk.worker(Duration::from_millis(5)),
        other.worker(Duration::from_millis(5)),
    ];
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    over(&desk, &run).await;
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn a_call_of_a_sub_agent_too() {
    let world = World::new();
    let mut team = Team::default();
    team.lead = calls(hands("clerk", "pay bob"));
    team.clerk = calls(Reply::calls().call("pay", &json!({"to": "bob", "cents": 5})));
    let lead = team.host(&world).await;
    let run = suspended(lead.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let _worker = lead.worker(Duration::from_millis(20));
    let call = the_one(&lead, &run).await;
    lead.decide(&fiona(), approve(&call)).await.unwrap();
    over(&lead, &run).await;
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn the_sweep_ends_what_nobody_decided_in_time_and_the_run_goes_on() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, _) = stopped(&desk).await;
    assert_eq!(desk.runtime().sweep().await.unwrap(), 0);
    world
        .tamper("UPDATE agentkit_calls SET expires_at = requested_at")
        .await;
    assert_eq!(desk.runtime().sweep().await.unwrap(), 1);
    assert_eq!(desk.runtime().sweep().await.unwrap(), 0);
    assert_eq!(stored(&desk, &run).await[0].state, CallState::Expired);
    let _worker = desk.worker(Duration::from_millis(20));
    over(&desk, &run).await;
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn a_run_whose_instance_died_is_taken_over() {
    let world = World::new();
    let desk = world
        .host(calls(
            Reply::calls().call("send_once", &json!({"what": "it"})),
        ))
        .await;
    let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let run = running.run().clone();
    while world.ledger.effects().is_empty() {
        tokio::task::yield_now().await;
    }
    world
        .tamper("UPDATE agentkit_runs SET lease_until = 0, lease_epoch = lease_epoch + 1, lease_owner = 'dead'")
        .await;
    let other = world.host(echo()).await;
    let _worker = other.worker(Duration::from_millis(20));
    while world.ledger.effects().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.hold.let_go();
    tokio::task::yield_now().await;
    world.hold.let_go();
    over(&desk, &run).await;
}
