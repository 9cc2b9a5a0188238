use agentkit::{
    approval::{Settlement, Verdict},
    call::CallState,
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
    run::{CancelError, CancelOutcome, DecideError, FinishReason},
    store::RunStatus,
};
use serde_json::json;

use crate::desk::*;

async fn status(desk: &Hosted<Desk>, run: &agentkit::call::RunId) -> RunStatus {
    desk.runtime().store().run(run).await.unwrap().status
}

#[tokio::test]
async fn what_waits_is_cancelled_and_cannot_be_decided_any_more() {
    let world = World::new();
    let desk = world
        .host(calls(
            Reply::calls()
                .call("pay", &json!({"to": "bob", "cents": 5}))
                .call("choose", &json!({})),
        ))
        .await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let pending = waiting(&desk, &run).await;
    // In another process.
    let desk = world.host(echo()).await;
    assert_eq!(
        desk.cancel(&alice(), &run).await.unwrap(),
        CancelOutcome::Cancelled
    );
    assert_eq!(status(&desk, &run).await, RunStatus::Cancelled);
    for call in stored(&desk, &run).await {
        assert_eq!(call.state, CallState::Cancelled);
    }
    let error = desk
        .decide(&fiona(), approve(&pending[0]))
        .await
        .unwrap_err();
    assert!(matches!(error, DecideError::NotPending { .. }), "{error:?}");
    assert_eq!(error.http_status(), 409);
    // Again, and resuming: nothing more happens.
    assert_eq!(
        desk.cancel(&alice(), &run).await.unwrap(),
        CancelOutcome::Cancelled
    );
    let Outcome::Finished { reason, .. } = desk.resume_and_wait(&run).await.unwrap() else {
        panic!("it is over")
    };
    assert_eq!(reason, FinishReason::Cancelled);
    assert!(world.ledger.effects().is_empty());
    let store = desk.runtime().store();
    store.verify_journal(&run).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_tool_that_executes_is_asked_to_stop_and_its_report_is_recorded() {
    // By the process that executes it, and by another one.
    for same in [true, false] {
        let world = World::new();
        let reply = || {
            Reply::calls()
                .call("stoppable", &json!({}))
                .call("balance", &json!({"of": "a"}))
        };
        let desk = world.host(calls(reply()).reply(reply())).await;
        let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
        while world.ledger.effects().len() < 2 {
            tokio::task::yield_now().await;
        }
        let run = running.run().clone();
        let other = world.host(echo()).await;
        let by = if same { &desk } else { &other };
        assert_eq!(
            by.cancel(&alice(), &run).await.unwrap(),
            CancelOutcome::Stopping
        );
        let Outcome::Finished { reason, .. } = Outcome::<Desk>::of(running.ending().await.unwrap())
        else {
            panic!("it is over")
        };
        assert_eq!(reason, FinishReason::Cancelled);
        let calls = stored(&desk, &run).await;
        assert_eq!(calls.len(), 2, "the model is not asked again");
        assert_eq!(calls[0].outcome.as_deref(), Some("\"stopped half-way\""));
        assert_eq!(calls[0].state, CallState::Succeeded);
        assert_eq!(status(&desk, &run).await, RunStatus::Cancelled);
    }
}

#[tokio::test]
async fn a_model_that_is_still_writing_is_not_waited_for() {
    let world = World::new();
    let slow = ScriptedModel::new()
        .pieces_of(1)
        .pausing(std::time::Duration::from_secs(5))
        .reply(Reply::text("one two three"));
    let desk = world.host(slow).await;
    let mut running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    running.next().await;
    let run = running.run().clone();
    let before = std::time::Instant::now();
    desk.cancel(&alice(), &run).await.unwrap();
    running.ending().await.unwrap();
    assert!(before.elapsed() < std::time::Duration::from_secs(4));
    assert_eq!(status(&desk, &run).await, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_call_in_doubt_is_settled_first() {
    let world = World::new();
    let desk = world
        .host(calls(Reply::calls().call("send", &json!({"what": "it"}))))
        .await;
    let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    while world.ledger.effects().is_empty() {
        tokio::task::yield_now().await;
    }
    world
        .tamper("UPDATE agentkit_runs SET lease_until = 0, lease_epoch = lease_epoch + 1, lease_owner = 'dead'")
        .await;
    let run = running.run().clone();
    let desk = world.host(echo()).await;
    assert_eq!(
        desk.cancel(&alice(), &run).await.unwrap(),
        CancelOutcome::InDoubt
    );
    let call = the_one(&desk, &run).await;
    let settled = Settlement::Succeeded {
        result: "it arrived".into(),
    };
    desk.decide(&fiona(), about(&call, Verdict::Settle(settled)))
        .await
        .unwrap();
    desk.resume_and_wait(&run).await.unwrap();
    assert_eq!(status(&desk, &run).await, RunStatus::Cancelled);
    assert_eq!(stored(&desk, &run).await[0].state, CallState::Succeeded);
}

#[tokio::test]
async fn only_the_requester_and_operators_may() {
    let world = World::new();
    let builder = world.builder::<Desk>(pays("bob", 5)).await;
    let desk = builder.operator_role("operator").build().unwrap();
    let (run, _) = stopped(&desk).await;
    let error = desk.cancel(&fiona(), &run).await.unwrap_err();
    assert!(matches!(error, CancelError::NotAllowed { .. }), "{error:?}");
    assert_eq!(error.http_status(), 403);
    let foreign = alice().tenant("elsewhere").role("operator");
    let error = desk.cancel(&foreign, &run).await.unwrap_err();
    assert!(matches!(error, CancelError::UnknownRun { .. }), "{error:?}");
    assert_eq!(status(&desk, &run).await, RunStatus::Suspended);
    let operator = Principal::new("olga", "test").role("operator");
    desk.cancel(&operator, &run).await.unwrap();
    assert_eq!(status(&desk, &run).await, RunStatus::Cancelled);
}

#[tokio::test]
async fn one_call_can_be_cancelled_and_the_run_goes_on() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&alice(), about(&call, Verdict::Cancel))
        .await
        .unwrap();
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(
        matches!(error, DecideError::AlreadyDecided { .. }),
        "{error:?}"
    );
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(text, "Cancelled: cancelled: the call was withdrawn");
    assert!(world.ledger.effects().is_empty());
}
