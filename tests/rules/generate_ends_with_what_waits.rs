//! `generate` is `stream` without the events: it ends suspended with the run's id and the pending
//! calls, typed, and after the decisions it gives the final result, in any process.

use agentkit::{model::scripted::Reply, prelude::*, run::FinishReason};
use serde_json::json;

use crate::desk::*;

fn two() -> Reply {
    Reply::calls()
        .call("pay", &json!({"to": "bob", "cents": 5}))
        .call("choose", &json!({}))
}

#[tokio::test]
async fn and_with_the_result_once_all_is_decided() {
    let world = World::new();
    let desk = world.host(calls(two())).await;
    let outcome = desk.generate(Input::new(alice(), "go")).await.unwrap();
    let Outcome::Suspended(waits) = outcome else {
        panic!("it waits")
    };
    assert!(waits.in_doubt.is_empty() && waits.unfit.is_empty() && waits.untyped.is_empty());
    let mut pending = waits.pending.into_iter();
    let (
        Some(DeskPending::Pay(Pending::Approval(pay))),
        Some(DeskPending::Choose(Pending::Question(seat))),
        None,
    ) = (pending.next(), pending.next(), pending.next())
    else {
        panic!("an approval and a question, in the order of the calls")
    };
    assert_eq!((pay.args.to.as_str(), pay.args.cents), ("bob", 5));
    assert_eq!(seat.payload.free, [1]);
    let schema = seat.call().answer_schema.as_ref().unwrap();
    assert_eq!(schema["required"], json!(["seat"]));
    let (pay, seat) = (pay.approve(), seat.answer(Seat { seat: 1 }).unwrap());

    // Continued while one still waits: what was decided has run, the other is what is left.
    let other = world.host(echo()).await;
    other.decide(&fiona(), pay).await.unwrap();
    let outcome = other.resume_and_wait(&waits.run).await.unwrap();
    let left = suspended(outcome);
    assert_eq!((left.run, left.pending.len()), (waits.run.clone(), 1));
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);

    other.decide(&alice(), seat).await.unwrap();
    let third = world.host(echo()).await;
    let Outcome::Finished { run, text, reason } = third.resume_and_wait(&waits.run).await.unwrap()
    else {
        panic!("nothing waits any more")
    };
    assert_eq!((run, reason), (waits.run, FinishReason::Answered));
    assert_eq!(text, "Succeeded: \"paid bob\"\nSucceeded: 1");
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn what_was_begun_by_one_is_continued_by_the_other() {
    let world = World::new();
    let desk = world.host(calls(two())).await;
    let mut running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let run = running.run().clone();
    let mut told = Vec::new();
    while let Some(event) = running.next().await {
        if let RunEvent::Pending(call) = event {
            told.push((call.call, call.answer_schema.is_some()));
        }
    }
    running.ending().await.unwrap();
    let waiting = waiting(&desk, &run).await;
    // A stream tells the same of them, with the schema of the answer where one is asked for.
    assert_eq!(
        told,
        [
            (waiting[0].call.clone(), false),
            (waiting[1].call.clone(), true)
        ]
    );
    desk.decide(&fiona(), approve(&waiting[0])).await.unwrap();
    let waits = suspended(desk.resume_and_wait(&run).await.unwrap());
    let Some(DeskPending::Choose(Pending::Question(seat))) = waits.pending.into_iter().next()
    else {
        panic!("the question waits")
    };
    let seat = seat.answer(Seat { seat: 1 }).unwrap();
    desk.decide(&alice(), seat).await.unwrap();
    let mut running = world.host(echo()).await.resume(&run).await.unwrap();
    let mut last = None;
    while let Some(event) = running.next().await {
        last = Some(event);
    }
    let Some(RunEvent::Finished { text, .. }) = last else {
        panic!("{last:?}")
    };
    assert_eq!(text, "Succeeded: \"paid bob\"\nSucceeded: 1");
}
