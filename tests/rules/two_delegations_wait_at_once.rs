//! Two agents below a supervisor wait at once, one of them three levels down, and every decision
//! is made and followed by another process.

use agentkit::{
    approval::{PendingCall, PendingKind, Verdict},
    call::{Canonical, RunId},
    model::scripted::Reply,
    prelude::*,
    store::{Page, RunFilter},
};
use serde_json::json;

use crate::{desk::*, team::*};

/// The lead hands out both tasks at once; the payment is handed down to the teller.
fn team() -> Team {
    let mut team = Team::default();
    team.lead = calls(
        Reply::calls()
            .call("clerk", &json!({"task": "have bob paid"}))
            .call("guide", &json!({"task": "choose a seat"})),
    );
    team.clerk = calls(hands("cashier", "have bob paid"));
    team.cashier = calls(hands("teller", "pay bob"));
    team.teller = calls(Reply::calls().call("pay", &json!({"to": "bob", "cents": 5})));
    team.guide = calls(Reply::calls().call("choose", &json!({})));
    team
}

#[derive(Clone, Copy, Debug)]
enum How {
    Stream,
    Generate,
}

/// What waits after a piece of work, by the tool, as that piece of work tells it.
async fn begun(lead: &Hosted<Lead>, how: How) -> (RunId, Vec<PendingCall>) {
    let input = Input::new(alice(), "go");
    let (run, mut told) = match how {
        How::Generate => {
            let waits = suspended(lead.generate(input).await.unwrap());
            let told = waits.pending.into_iter().map(|call| call.0).collect();
            (waits.run, told)
        }
        How::Stream => {
            let mut running = lead.stream(input).await.unwrap();
            let run = running.run().clone();
            let (mut told, mut ids) = (Vec::new(), Vec::new());
            while let Some(event) = running.next().await {
                match event {
                    RunEvent::Pending(call) => told.push(*call),
                    RunEvent::Suspended { pending } => ids = pending,
                    _ => {}
                }
            }
            assert_eq!(ids.len(), told.len(), "each was told of once");
            assert!(told.iter().all(|call| ids.contains(&call.call)));
            (run, told)
        }
    };
    told.sort_by(|a, b| a.tool.cmp(&b.tool));
    (run, told)
}

/// Continues a run and gives its last text, if it is over.
async fn continued(lead: &Hosted<Lead>, run: &RunId, how: How) -> Option<String> {
    match how {
        How::Generate => match lead.resume_and_wait(run).await.unwrap() {
            Outcome::Finished { text, .. } => Some(text),
            _ => None,
        },
        How::Stream => {
            let mut running = lead.resume(run).await.unwrap();
            let mut last = None;
            while let Some(event) = running.next().await {
                last = Some(event);
            }
            match last {
                Some(RunEvent::Finished { text, .. }) => Some(text),
                Some(RunEvent::Suspended { pending }) if pending.len() == 1 => None,
                other => panic!("{other:?}"),
            }
        }
    }
}

fn decision(call: &PendingCall) -> (Principal, Decision) {
    match call.kind {
        PendingKind::Question => {
            let data = Canonical::of(&json!({"seat": 1})).unwrap();
            (alice(), about(call, Verdict::Answer { data }))
        }
        _ => (fiona(), approve(call)),
    }
}

#[tokio::test]
async fn over_restarts_in_any_order_by_stream_and_by_generate() {
    for (how, reversed) in [
        (How::Stream, false),
        (How::Stream, true),
        (How::Generate, false),
        (How::Generate, true),
    ] {
        let world = World::new();
        let (run, mut told) = begun(&team().host(&world).await, how).await;
        let [question, payment] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!(payment.path, ["lead", "clerk", "cashier", "teller"]);
        assert_eq!(question.path, ["lead", "guide"]);
        assert!(told.iter().all(|call| call.root == run && call.run != run));
        // The schema of the answer is that of a tool of the agent below.
        assert!(question.answer_schema.is_some());

        // Another process finds one record, with both.
        let lead = Team::default().host(&world).await;
        let found = lead
            .suspended_runs(RunFilter::suspended(), &Page::default())
            .await
            .unwrap();
        let [record] = found.as_slice() else {
            panic!("one record for the whole delegation")
        };
        let mut listed: Vec<_> = record.waiting.pending.iter().map(|call| &call.0).collect();
        listed.sort_by(|a, b| a.tool.cmp(&b.tool));
        assert_eq!(listed, told.iter().collect::<Vec<_>>());

        if reversed {
            told.reverse();
        }
        let (by, first) = decision(&told[0]);
        lead.decide(&by, first).await.unwrap();
        let lead = Team::default().host(&world).await;
        assert_eq!(continued(&lead, &run, how).await, None);
        let left = the_one(&lead, &run).await;
        assert_eq!(left.fingerprint, told[1].fingerprint, "it is as it was");

        let (by, second) = decision(&told[1]);
        Team::default()
            .host(&world)
            .await
            .decide(&by, second)
            .await
            .unwrap();
        let last = Team::default();
        let asked = [&last.lead, &last.clerk, &last.cashier, &last.teller].map(Clone::clone);
        let text = continued(&last.host(&world).await, &run, how)
            .await
            .expect("nothing waits any more");
        // Nobody's earlier step was repeated: each agent that had to go on was asked once.
        assert!(asked.iter().all(|model| model.requests().len() <= 1));
        assert_eq!(asked[0].requests().len(), 1);
        assert_eq!(world.ledger.effects(), ["pay bob 5"]);
        // Results are in the order of the calls.
        let (paid, seat) = (text.find("paid bob").unwrap(), text.rfind('1').unwrap());
        assert!(paid < seat, "{text}");
        let store = lead.runtime().store();
        for below in store.delegated(&run).await.unwrap() {
            assert!(below.status.is_final());
            store.verify_journal(&below.id).await.unwrap().unwrap();
        }
    }
}
