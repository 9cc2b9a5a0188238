use agentkit::{model::scripted::Reply, prelude::*, run::DecideError};
use serde_json::json;

use crate::desk::*;

#[tokio::test]
async fn each_has_its_own_result_and_one_that_is_refused_stops_none() {
    let world = World::new();
    let reply = Reply::calls()
        .call("pay", &json!({"to": "a", "cents": 1}))
        .call("pay", &json!({"to": "b", "cents": 2}))
        .call("pay", &json!({"to": "c", "cents": 3}));
    let desk = world.host(calls(reply)).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let waiting = waiting(&desk, &run).await;
    let mut mixed_up = approve(&waiting[1]);
    mixed_up.fingerprint = waiting[0].fingerprint;
    let batch = [
        approve(&waiting[0]),
        mixed_up,
        decline(&waiting[2], "no"),
        approve(&waiting[0]),
    ];
    let results = desk.decide_all(&fiona(), batch).await;
    assert!(!results[0].as_ref().unwrap().repeated);
    let error = results[1].as_ref().unwrap_err();
    assert!(
        matches!(error, DecideError::FingerprintMismatch { .. }),
        "{error:?}"
    );
    assert!(results[2].is_ok());
    assert!(results[3].as_ref().unwrap().repeated);
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(the_one(&desk, &run).await.call, waiting[1].call);
    assert_eq!(world.ledger.effects(), ["pay a 1"]);
}
