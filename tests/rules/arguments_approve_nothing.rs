use agentkit::{call::CallState, model::scripted::Reply, prelude::*};
use serde_json::json;

use crate::desk::*;

#[tokio::test]
async fn keys_that_look_like_decisions_are_unknown_keys() {
    for key in [
        "approved",
        "resumeData",
        "resume",
        "suspend",
        "__approval",
        "decision",
    ] {
        let world = World::new();
        let mut arguments = json!({"to": "bob", "cents": 5});
        arguments[key] = json!(true);
        let desk = world
            .host(calls(Reply::calls().call("pay", &arguments)))
            .await;
        let text = finished(desk.generate(Input::new(alice(), "go")).await.unwrap());
        assert!(text.starts_with("Invalid:") && text.contains(key), "{text}");
        assert!(world.ledger.effects().is_empty());
    }
}

#[tokio::test]
async fn a_tools_own_field_of_that_name_reaches_the_tool() {
    let world = World::new();
    let arguments = json!({"approved": true, "resume_data": "mine"});
    let desk = world
        .host(calls(Reply::calls().call("note", &arguments)))
        .await;
    let (run, call) = stopped(&desk).await;
    assert!(
        world.ledger.effects().is_empty(),
        "it is asked about as any call"
    );
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["note true mine"]);
    assert_eq!(stored(&desk, &run).await[0].state, CallState::Succeeded);
}
