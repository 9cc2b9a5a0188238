use agentkit::prelude::*;
use serde_json::{Value, json};

use crate::desk::*;

#[tokio::test]
async fn what_is_no_decision_is_neither_an_approval_nor_a_refusal() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    let whole = serde_json::to_value(approve(&call)).unwrap();
    assert_eq!(
        serde_json::from_value::<Decision>(whole.clone()).unwrap(),
        approve(&call)
    );
    for (key, wrong) in [
        ("verdict", json!("yes")),
        ("verdict", json!(1)),
        ("verdict", json!(true)),
        ("verdict", Value::Null),
        ("verdict", json!({"kind": "Approve"})),
        ("verdict", json!({"kind": "approved"})),
        ("verdict", json!({"kind": ["approve"]})),
        ("verdict", json!({"approved": true})),
        ("fingerprint", json!("")),
        ("fingerprint", json!("sha256:00")),
        ("fingerprint", Value::Null),
        ("call", json!("")),
        ("run", json!(5)),
    ] {
        let mut decision = whole.clone();
        decision[key] = wrong;
        let read = serde_json::from_value::<Decision>(decision.clone());
        assert!(read.is_err(), "{decision}");
    }
    // Without a call, or without what was seen, there is nothing to decide about.
    for missing in ["run", "call", "fingerprint", "verdict"] {
        let mut decision = whole.clone();
        decision.as_object_mut().unwrap().remove(missing);
        assert!(serde_json::from_value::<Decision>(decision).is_err());
    }
    assert_eq!(the_one(&desk, &run).await, call);
}
