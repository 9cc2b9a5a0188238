use agentkit::{
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
    run::{FinishReason, RunError},
};
use serde_json::json;

use crate::desk::*;

/// All events that the database has after a number.
async fn attached(
    desk: &Hosted<Desk>,
    run: &agentkit::call::RunId,
    after: i64,
) -> Vec<(i64, RunEvent)> {
    let mut attached = desk.attach(run, after).await.unwrap();
    let mut events = Vec::new();
    while let Some(next) = attached.next().await.unwrap() {
        events.push((next.sequence, next.event));
    }
    events
}

fn bytes(events: &[(i64, RunEvent)]) -> usize {
    let text = |(_, event)| serde_json::to_string::<RunEvent>(event).unwrap().len();
    events.iter().map(|(a, b)| (a, b)).map(text).sum()
}

#[tokio::test]
async fn another_process_sees_what_the_first_listener_saw_and_goes_on_from_there() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let mut running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let run = running.run().clone();
    let mut live = Vec::new();
    while let Some(next) = running.next_sequenced().await {
        live.push((next.sequence, next.event));
    }
    let Some((last, RunEvent::Suspended { pending })) = live.last().cloned() else {
        panic!("suspended is the last event: {live:?}")
    };
    let other = world.host(echo()).await;
    let call = the_one(&other, &run).await;
    assert_eq!(pending, std::slice::from_ref(&call.call));
    let read = attached(&other, &run, 0).await;
    assert_eq!(format!("{read:?}"), format!("{live:?}"));
    // From the middle, and from the end.
    let middle = live.len() / 2;
    let rest = attached(&other, &run, live[middle].0).await;
    assert_eq!(format!("{rest:?}"), format!("{:?}", &live[middle + 1..]));
    assert!(attached(&other, &run, last).await.is_empty());

    // A third process works on it; the second follows without knowing which.
    other.decide(&fiona(), approve(&call)).await.unwrap();
    let third = world.host(echo()).await;
    let running = third.resume(&run).await.unwrap();
    let rest = attached(&other, &run, last).await;
    running.ending().await.unwrap();
    assert!(rest.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(rest[0].0 > last);
    let ended = rest
        .iter()
        .filter(|(_, event)| matches!(event, RunEvent::ToolEnded { .. }));
    assert_eq!(ended.count(), 1);
    let (_, RunEvent::Finished { text, reason }) = rest.last().unwrap() else {
        panic!("finished is the last event: {rest:?}")
    };
    assert_eq!(
        (text.as_str(), *reason),
        ("Succeeded: \"paid bob\"", FinishReason::Answered)
    );
}

#[tokio::test]
async fn a_listener_that_goes_away_cancels_and_repeats_nothing() {
    let world = World::new();
    let desk = world
        .host(calls(Reply::calls().call("send", &json!({"what": "it"}))))
        .await;
    let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let run = running.run().clone();
    while world.ledger.effects().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(running);
    let mut again = desk.attach(&run, 0).await.unwrap();
    world.hold.let_go();
    let mut last = None;
    while let Some(next) = again.next().await.unwrap() {
        last = Some(next.event);
    }
    assert!(matches!(last, Some(RunEvent::Finished { .. })), "{last:?}");
    assert_eq!(world.ledger.effects(), ["send it"]);
}

#[tokio::test]
async fn a_model_that_fails_is_told_as_the_last_event() {
    let world = World::new();
    let desk = world.host(ScriptedModel::new()).await;
    let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let run = running.run().clone();
    let error = running.ending().await.unwrap_err();
    assert!(matches!(error, RunError::Model { .. }));
    let events = attached(&desk, &run, 0).await;
    assert!(
        matches!(events.last(), Some((_, RunEvent::Failed { .. }))),
        "{events:?}"
    );
}

#[tokio::test]
async fn what_is_kept_and_sent_is_linear_in_the_steps() {
    let mut sizes = Vec::new();
    for steps in [10, 20, 40] {
        let world = World::new();
        let mut model = ScriptedModel::new();
        for _ in 0..steps {
            model = model.reply(
                Reply::text("Let me look at it.").call("balance", &json!({"of": "somebody"})),
            );
        }
        let desk = world.host(model.reply(Reply::text("done"))).await;
        let input = Input::new(alice(), "go").max_steps(99);
        let running = desk.stream(input).await.unwrap();
        let run = running.run().clone();
        running.ending().await.unwrap();
        sizes.push(bytes(&attached(&desk, &run, 0).await));
    }
    let (first, second) = (sizes[1] - sizes[0], sizes[2] - sizes[1]);
    assert!(second < first * 2 + first / 10, "{sizes:?}");
}

#[tokio::test]
async fn strangers_cannot_attach() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, _) = stopped(&desk).await;
    let other = world.builder::<Other>(echo()).await.build().unwrap();
    assert!(matches!(
        other.attach(&run, 0).await,
        Err(RunError::UnknownRun { .. })
    ));
}
