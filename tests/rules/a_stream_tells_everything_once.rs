use std::collections::BTreeMap;

use agentkit::{
    call::CallState,
    model::{Usage, scripted::Reply},
    prelude::*,
    run::{FinishReason, Running},
};
use serde_json::json;

use crate::desk::*;

/// An event in one word, and the number of its call.
fn word(event: &RunEvent, numbers: &mut BTreeMap<String, usize>) -> Option<String> {
    let mut number = |call: &agentkit::call::CallId| {
        let next = numbers.len();
        *numbers.entry(call.to_string()).or_insert(next)
    };
    Some(match event {
        RunEvent::StepStarted { step } => format!("step {step}"),
        RunEvent::ToolInputStarted { index, tool } => format!("writes {index} {tool}"),
        RunEvent::ToolCall { call, .. } => format!("call {}", number(call)),
        RunEvent::Pending(call) => format!("waits {}", number(&call.call)),
        RunEvent::ToolEnded { call, state, .. } => format!("{state} {}", number(call)),
        RunEvent::StepFinished { step, usage } => {
            format!("step {step} used {}", usage.output_tokens)
        }
        RunEvent::Suspended { pending } => format!("suspended {}", pending.len()),
        RunEvent::Finished { reason, .. } => format!("finished {}", reason.as_str()),
        RunEvent::TextDelta { .. } | RunEvent::ToolInputDelta { .. } => return None,
        other => panic!("{other:?}"),
    })
}

async fn read(mut running: Running) -> Vec<RunEvent> {
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event);
    }
    events
}

#[tokio::test]
async fn in_the_order_in_which_it_happens_and_in_pieces() {
    let world = World::new();
    let used = |tokens| {
        let mut usage = Usage::default();
        usage.output_tokens = tokens;
        usage
    };
    let first = Reply::text("Let me look at that, and then pay.")
        .call("pay", &json!({"to": "broken", "cents": 5}))
        .call("balance", &json!({"of": "somebody with a long name"}))
        .call("pay", &json!({"to": "bob", "cents": "five"}))
        .call("pay", &json!({"to": "eve", "cents": 6}))
        .usage(used(7));
    let model = calls(first).reply(Reply::text("That was all.").usage(used(3)));
    let desk = world.host(model.pieces_of(5)).await;
    let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
    let run = running.run().clone();
    let events = read(running).await;
    let mut numbers = BTreeMap::new();
    let words: Vec<_> = events
        .iter()
        .filter_map(|event| word(event, &mut numbers))
        .collect();
    assert_eq!(
        words,
        [
            "step 1",
            "writes 0 pay",
            "writes 1 balance",
            "writes 2 pay",
            "writes 3 pay",
            "call 0",
            "call 1",
            "call 2",
            "call 3",
            "step 1 used 7",
            "waits 0",
            "denied 2",
            "waits 3",
            "succeeded 1",
            "suspended 2",
        ]
    );
    // Text and input come in pieces that make up the whole, and no piece repeats an earlier one.
    let (mut text, mut inputs) = (Vec::new(), BTreeMap::<u32, Vec<String>>::new());
    for event in &events {
        match event {
            RunEvent::TextDelta { text: piece } => text.push(piece.as_str()),
            RunEvent::ToolInputDelta { index, json } => {
                inputs.entry(*index).or_default().push(json.clone());
            }
            _ => {}
        }
    }
    assert_eq!(text.concat(), "Let me look at that, and then pay.");
    assert!(text.len() > 5, "{text:?}");
    let looked: serde_json::Value = serde_json::from_str(&inputs[&1].concat()).unwrap();
    assert_eq!(looked, json!({"of": "somebody with a long name"}));
    assert!(inputs[&1].len() > 5, "{inputs:?}");

    let waiting = waiting(&desk, &run).await;
    desk.decide(&fiona(), approve(&waiting[0])).await.unwrap();
    desk.decide(&fiona(), decline(&waiting[1], "not her"))
        .await
        .unwrap();
    let other = world.host(desk_says("That was all.", used(3))).await;
    let events = read(other.resume(&run).await.unwrap()).await;
    let mut words: Vec<_> = events
        .iter()
        .filter_map(|event| word(event, &mut numbers))
        .collect();
    // Which of the two is told first is not said.
    words[..2].sort();
    assert_eq!(
        words,
        [
            "declined 3",
            "failed 0",
            "step 2",
            "step 2 used 3",
            "finished answered"
        ]
    );
    let outcome = |wanted: CallState| {
        events.iter().find_map(|event| match event {
            RunEvent::ToolEnded { state, outcome, .. } if *state == wanted => {
                Some(outcome.as_str())
            }
            _ => None,
        })
    };
    assert_eq!(outcome(CallState::Failed), Some("the bank is closed"));
    assert!(outcome(CallState::Declined).unwrap().contains("not her"));
    let Some(RunEvent::Finished { text, reason }) = events.last() else {
        panic!("finished is the last event")
    };
    assert_eq!(
        (text.as_str(), *reason),
        ("That was all.", FinishReason::Answered)
    );
}

fn desk_says(text: &str, usage: Usage) -> agentkit::model::scripted::ScriptedModel {
    agentkit::model::scripted::ScriptedModel::new().reply(Reply::text(text).usage(usage))
}
