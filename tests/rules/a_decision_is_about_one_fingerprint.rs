use agentkit::{model::scripted::Reply, run::DecideError};
use serde_json::json;

use crate::desk::*;

#[tokio::test]
async fn a_decision_for_one_call_is_refused_for_the_next() {
    let world = World::new();
    let next = Reply::calls().call("pay", &json!({"to": "eve", "cents": 6}));
    let desk = world.host(pays("bob", 5).reply(next)).await;
    let (run, first) = stopped(&desk).await;
    let replay = approve(&first);
    desk.decide(&fiona(), replay.clone()).await.unwrap();
    suspended(desk.resume_and_wait(&run).await.unwrap());
    let second = the_one(&desk, &run).await;
    // The old decision again: it is the recorded one of the first call.
    assert!(
        desk.decide(&fiona(), replay.clone())
            .await
            .unwrap()
            .repeated
    );
    // The old fingerprint on the new call.
    let mut forged = replay;
    forged.call = second.call.clone();
    let error = desk.decide(&fiona(), forged).await.unwrap_err();
    assert!(
        matches!(error, DecideError::FingerprintMismatch { .. }),
        "{error:?}"
    );
    assert_eq!(the_one(&desk, &run).await, second);
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn equal_calls_have_different_fingerprints() {
    let world = World::new();
    let reply = || Reply::calls().call("pay", &json!({"to": "bob", "cents": 5}));
    let desk = world.host(calls(reply()).reply(reply())).await;
    let (_, first) = stopped(&desk).await;
    let (_, second) = stopped(&desk).await;
    assert_eq!(first.arguments, second.arguments);
    assert_ne!(first.fingerprint, second.fingerprint);
}
