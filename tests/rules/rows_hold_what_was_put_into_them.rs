//! Byte for byte: long texts, characters outside of the first plane, ids that differ in case or in
//! a blank at the end.

use agentkit::{model::scripted::Reply, prelude::*};
use serde_json::json;

use crate::desk::*;

#[tokio::test]
async fn long_and_rare_arguments_survive() {
    let world = World::new();
    // More than the 64 KiB of MySQL's `TEXT`, with four-byte characters and what JSON columns
    // would rewrite.
    let to = "\u{1f4b6}é\u{301}\\\"".repeat(20_000);
    let desk = world.host(pays(&to, 9_007_199_254_740_993)).await;
    let (run, call) = stopped(&desk).await;
    assert!(call.arguments.as_str().contains("9007199254740993"));
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let desk = world.host(echo()).await;
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(text, format!("Succeeded: \"paid {}\"", escaped(&to)));
    assert_eq!(
        world.ledger.effects(),
        [format!("pay {to} 9007199254740993")]
    );
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// PostgreSQL cannot store it: the call would never be over.
#[tokio::test]
async fn the_character_zero_keeps_nothing_from_being_recorded() {
    let world = World::new();
    let model = calls(
        Reply::calls()
            .call("no\0tool", &json!({}))
            .call("balance", &json!({"of": "a\0b"})),
    );
    let desk = world.host(model).await;
    let text = finished(desk.generate(Input::new(alice(), "g\0o")).await.unwrap());
    assert!(text.contains("Succeeded: 42"), "{text}");
    assert_eq!(world.ledger.effects(), ["balance a\0b"]);
    let desk = world.host(pays("broken", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), decline(&call, "n\0o")).await.unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(text.contains("n\u{fffd}o"), "{text}");
}

const THREE: &str = r#"
    @id("pays") permit (principal, action == Action::"pay with approval", resource)
        when { context.approvals.count >= 3 };
    @id("approve") permit (principal in Role::"finance", action == Action::"approve pay", resource);
"#;

/// Where a database held them to be one person, the second vote would be refused as a repetition
/// or written over the first.
#[tokio::test]
async fn approvers_whose_ids_look_alike_are_several_people() {
    let world = World::new();
    let desk = world.host_under(pays("bob", 5), THREE).await;
    let (run, call) = stopped(&desk).await;
    for (id, left) in [("fiona", 2), ("Fiona", 1), ("fiona ", 0)] {
        let mut person = fiona();
        person.id = id.to_owned();
        let decided = desk.decide(&person, approve(&call)).await.unwrap();
        assert_eq!(
            (decided.repeated, decided.still_needed),
            (false, left),
            "{id:?}"
        );
    }
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}
