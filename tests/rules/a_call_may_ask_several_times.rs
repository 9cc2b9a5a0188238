//! A typed tool that needs an approval and then asks two questions, one after the other, with
//! another process after each of them.

use agentkit::{
    approval::{PendingCall, PendingKind, Verdict},
    call::Canonical,
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
    run::DecideError,
    tool::ToolError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::desk::*;

/// What `trip` asks, with what it has learnt.
#[derive(Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskTrip {
    /// Where to?
    City,
    /// When?
    Day { city: String },
}

/// The answers.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TripAnswer {
    City(String),
    Day(String),
}

/// Plan a trip; asks where to, and then when.
#[tool(suspend = AskTrip, resume = TripAnswer, require_approval)]
pub async fn trip(
    people: u32,
    #[resume] answer: Option<TripAnswer>,
    #[ctx] run: &RunContext,
    #[ctx] ledger: &Ledger,
) -> Result<Flow<String, AskTrip>, ToolError> {
    match (answer, run.asked::<AskTrip>()?) {
        (None, None) => Ok(Flow::Suspend(AskTrip::City)),
        (Some(TripAnswer::City(city)), Some(AskTrip::City)) => {
            Ok(Flow::Suspend(AskTrip::Day { city }))
        }
        (Some(TripAnswer::Day(day)), Some(AskTrip::Day { city })) => {
            ledger.add(format!("trip of {people} to {city} on {day}"));
            Ok(Flow::Done(format!("{city} on {day}")))
        }
        (_, asked) => Err(ToolError::new(format!("no answer to {asked:?}"))),
    }
}

/// An agent.
#[agent(name = "travel", model = "test/scripted", instructions = "You travel.", tools = [trip])]
pub struct Travel;

async fn host(world: &World, model: ScriptedModel) -> Hosted<Travel> {
    world.builder(model).await.build().unwrap()
}

fn answer(call: &PendingCall, value: &Value) -> Decision {
    let data = Canonical::of(value).unwrap();
    about(call, Verdict::Answer { data })
}

#[tokio::test]
async fn after_one_approval_and_over_restarts() {
    let world = World::new();
    let desk = host(
        &world,
        calls(Reply::calls().call("trip", &json!({"people": 2}))),
    )
    .await;
    let outcome = desk.generate(Input::new(alice(), "go")).await.unwrap();
    let mut waits = suspended(outcome);
    let run = waits.run.clone();
    let Some(TravelPending::Trip(Pending::Approval(approval))) = waits.pending.pop() else {
        panic!("an approval comes first")
    };
    let mut fingerprints = vec![approval.call().fingerprint];
    desk.decide(&fiona(), approval.approve()).await.unwrap();

    let desk = host(&world, echo()).await;
    let mut waits = suspended(desk.resume_and_wait(&run).await.unwrap());
    let Some(TravelPending::Trip(Pending::Question(where_to))) = waits.pending.pop() else {
        panic!("then the first question")
    };
    assert_eq!(where_to.payload, AskTrip::City);
    // What a process is told that continued the run suffices to draw a form.
    assert!(where_to.call().answer_schema.is_some());
    let first = where_to.call().clone();
    fingerprints.push(first.fingerprint);
    let rome = where_to.answer(TripAnswer::City("Rome".into())).unwrap();
    desk.decide(&alice(), rome.clone()).await.unwrap();

    let desk = host(&world, echo()).await;
    let mut waits = suspended(desk.resume_and_wait(&run).await.unwrap());
    let Some(TravelPending::Trip(Pending::Question(when))) = waits.pending.pop() else {
        panic!("then the second question, and no second approval")
    };
    assert_eq!(
        when.payload,
        AskTrip::Day {
            city: "Rome".into()
        }
    );
    let second = when.call().clone();
    fingerprints.push(second.fingerprint);
    // Neither the answer to the first question nor an approval does for the second one.
    let error = desk.decide(&alice(), rome).await.unwrap_err();
    assert!(
        matches!(error, DecideError::FingerprintMismatch { .. }),
        "{error:?}"
    );
    let error = desk
        .decide(&fiona(), about(&second, Verdict::Approve))
        .await
        .unwrap_err();
    assert!(matches!(error, DecideError::WrongKind { .. }), "{error:?}");
    assert_eq!(the_one(&desk, &run).await.kind, PendingKind::Question);
    assert!(world.ledger.effects().is_empty());
    desk.decide(&alice(), answer(&second, &json!({"day": "Monday"})))
        .await
        .unwrap();

    let desk = host(&world, echo()).await;
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(text, "Succeeded: \"Rome on Monday\"");
    assert_eq!(world.ledger.effects(), ["trip of 2 to Rome on Monday"]);
    fingerprints.sort_by_key(ToString::to_string);
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 3, "each occasion has its own");
    assert_eq!((first.call, first.quorum), (second.call, second.quorum));
    let store = desk.runtime().store();
    store.verify_journal(&run).await.unwrap().unwrap();
}
