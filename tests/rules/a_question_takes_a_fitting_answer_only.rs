use agentkit::{
    approval::{PendingKind, Verdict},
    call::Canonical,
    model::scripted::Reply,
    prelude::*,
    run::DecideError,
};
use serde_json::{Value, json};

use crate::desk::*;

fn answer(call: &agentkit::approval::PendingCall, value: &Value) -> Decision {
    about(
        call,
        Verdict::Answer {
            data: Canonical::of(value).unwrap(),
        },
    )
}

#[tokio::test]
async fn a_wrong_answer_leaves_the_question_open_and_the_right_one_works() {
    let world = World::new();
    let desk = world
        .host(calls(Reply::calls().call("choose", &json!({}))))
        .await;
    let (run, call) = stopped(&desk).await;
    assert_eq!(call.kind, PendingKind::Question);
    assert_eq!(call.payload.as_ref().unwrap().as_str(), r#"{"free":[1]}"#);
    for wrong in [
        json!({"seat": "one"}),
        json!({}),
        json!(null),
        json!({"seat": 1, "x": 2}),
        json!(1),
    ] {
        let error = desk
            .decide(&alice(), answer(&call, &wrong))
            .await
            .unwrap_err();
        assert!(
            matches!(error, DecideError::DoesNotFit(_)),
            "{wrong}: {error:?}"
        );
        assert_eq!(error.http_status(), 422);
        assert_eq!(the_one(&desk, &run).await, call);
    }
    desk.decide(&alice(), answer(&call, &json!({"seat": 0})))
        .await
        .unwrap();
    assert_eq!(
        finished(desk.resume_and_wait(&run).await.unwrap()),
        "Succeeded: 0"
    );
}

#[tokio::test]
async fn an_approval_is_no_answer_and_an_answer_is_no_approval() {
    let world = World::new();
    let reply = Reply::calls().call("choose", &json!({}));
    let desk = world.host(calls(reply)).await;
    let (_, question) = stopped(&desk).await;
    for verdict in [Verdict::Approve, Verdict::Decline { reason: None }] {
        let error = desk
            .decide(&fiona(), about(&question, verdict))
            .await
            .unwrap_err();
        assert!(matches!(error, DecideError::WrongKind { .. }), "{error:?}");
    }
    let desk = world.host(pays("bob", 5)).await;
    let (run, approval) = stopped(&desk).await;
    let error = desk
        .decide(&fiona(), answer(&approval, &json!({"seat": 1})))
        .await
        .unwrap_err();
    assert!(matches!(error, DecideError::WrongKind { .. }), "{error:?}");
    assert_eq!(the_one(&desk, &run).await, approval);
}

#[tokio::test]
async fn a_gated_tool_that_asks_is_approved_first_and_not_again_after_the_answer() {
    let world = World::new();
    let desk = world
        .host(calls(
            Reply::calls().call("book", &json!({"train": "ICE 5"})),
        ))
        .await;
    let (run, approval) = stopped(&desk).await;
    assert_eq!(approval.kind, PendingKind::Approval);
    desk.decide(&fiona(), approve(&approval)).await.unwrap();
    suspended(desk.resume_and_wait(&run).await.unwrap());
    let question = the_one(&desk, &run).await;
    assert_eq!(question.kind, PendingKind::Question);
    assert_ne!(question.fingerprint, approval.fingerprint);
    desk.decide(&alice(), answer(&question, &json!({"seat": 8})))
        .await
        .unwrap();
    assert_eq!(
        finished(desk.resume_and_wait(&run).await.unwrap()),
        "Succeeded: \"seat 8\""
    );
    assert_eq!(world.ledger.effects(), ["book ICE 5 8"]);
}

/// The same from JSON, by the tool's name, as HTTP or a command line has it.
#[test]
fn an_answer_from_json_is_decoded_by_the_tools_name() {
    use agentkit::agent::ResumeSet as _;
    let answer = DeskResume::decode("choose", &json!({"seat": 3})).unwrap();
    assert!(matches!(&answer, DeskResume::Choose(Seat { seat: 3 })));
    assert_eq!(answer.encode().unwrap().as_str(), r#"{"seat":3}"#);
    for (tool, value) in [
        ("choose", json!({"seat": "3"})),
        ("pay", json!({})),
        ("none", json!({})),
    ] {
        assert!(DeskResume::decode(tool, &value).is_err(), "{tool} {value}");
    }
}
