use agentkit::{gate::RequireApproval, model::scripted::Reply, prelude::*, run::FinishReason};
use serde_json::json;

use crate::desk::*;

fn looks() -> Reply {
    Reply::calls().call("balance", &json!({"of": "a"}))
}

#[tokio::test]
async fn a_run_that_asks_for_approval_of_everything() {
    let world = World::new();
    let desk = world.host(calls(looks()).reply(looks())).await;
    let input = Input::new(alice(), "go").require_approval(RequireApproval::On);
    let run = suspended(desk.generate(input).await.unwrap()).run;
    let call = the_one(&desk, &run).await;
    assert_eq!(call.reasons[0].to_string(), "the run asks for it");
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    // The second call, after a suspension and in another instance, is asked about too.
    let desk = world.host(calls(looks())).await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects().len(), 1);
}

#[tokio::test]
async fn a_predicate_decides_and_one_that_is_gone_means_approval() {
    let world = World::new();
    let reply = || {
        Reply::calls()
            .call("balance", &json!({"of": "public"}))
            .call("balance", &json!({"of": "secret"}))
    };
    let desk = world.host(calls(reply())).await;
    let predicate = RequireApproval::when(|call| Ok(call.arguments["of"] == "secret"));
    let input = Input::new(alice(), "go").require_approval(predicate);
    let run = suspended(desk.generate(input).await.unwrap()).run;
    assert_eq!(world.ledger.effects(), ["balance public"]);
    let call = the_one(&desk, &run).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    // After a restart the predicate is gone: even the public one is asked about.
    let desk = world.host(calls(looks())).await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    let call = the_one(&desk, &run).await;
    assert!(
        call.reasons[0].to_string().contains("not available"),
        "{:?}",
        call.reasons
    );
}

#[tokio::test]
async fn the_step_budget_counts_over_suspensions() {
    let world = World::new();
    let desk = world
        .host(pays("bob", 5).reply(looks()).reply(looks()))
        .await;
    let input = Input::new(alice(), "go").max_steps(2);
    let run = suspended(desk.generate(input).await.unwrap()).run;
    let call = the_one(&desk, &run).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let outcome = desk.resume_and_wait(&run).await.unwrap();
    let Outcome::Finished { reason, .. } = outcome else {
        panic!("not finished")
    };
    assert_eq!(reason, FinishReason::StepLimit);
    assert_eq!(world.ledger.effects(), ["pay bob 5", "balance a"]);
}
