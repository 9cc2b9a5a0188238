use agentkit::{model::scripted::Reply, prelude::*};
use serde_json::json;

use crate::desk::*;

async fn refused(reply: Reply) -> String {
    let world = World::new();
    let desk = world.host(calls(reply)).await;
    let text = finished(desk.generate(Input::new(alice(), "go")).await.unwrap());
    assert!(world.ledger.effects().is_empty(), "{text}");
    text
}

#[tokio::test]
async fn wrong_types_unknown_keys_and_duplicates_go_back_to_the_model_with_the_path() {
    for (arguments, named) in [
        (r#"{"to":"bob","cents":"5"}"#, "cents"),
        (r#"{"to":"bob","cents":5.5}"#, "cents"),
        (r#"{"to":"bob","cents":-1}"#, "cents"),
        (r#"{"to":"bob","cents":18446744073709551616}"#, "cents"),
        (r#"{"to":"bob"}"#, "cents"),
        (r#"{"to":"bob","cents":5,"bcc":"eve"}"#, "bcc"),
        (r#"{"to":"bob","to":"eve","cents":5}"#, "to"),
        (r#"{"to":"bob","cents":5"#, "JSON"),
        (r#"{"to":null,"cents":5}"#, "to"),
        ("[]", "object"),
        // Some providers send nothing for an empty object.
        ("", "to"),
        (r#"{"to":"bob","cents":5,"approved":true}"#, "approved"),
    ] {
        let text = refused(Reply::calls().call_raw("pay", arguments)).await;
        assert!(
            text.starts_with("Invalid: ") && text.contains(named),
            "{arguments}: {text}"
        );
    }
}

#[tokio::test]
async fn an_unknown_tool_is_named_with_the_known_ones() {
    let text = refused(Reply::calls().call("pay_all", &json!({}))).await;
    assert!(
        text.contains("`pay_all`") && text.contains("`pay`"),
        "{text}"
    );
}

#[tokio::test]
async fn what_the_policy_denies_is_denied_without_asking() {
    let world = World::new();
    let policy = r#"
        @id("small") permit (principal, action == Action::"pay with approval", resource)
            when { context.approvals.count >= 1 };
        @id("approve") permit (principal, action == Action::"approve pay", resource);
        @id("never-eve") @why("she is on the list") forbid (principal, action in Action::"pay", resource)
            when { context.input.to == "eve" };
    "#;
    let desk = world.host_under(pays("eve", 5), policy).await;
    let text = finished(desk.generate(Input::new(alice(), "go")).await.unwrap());
    assert!(
        text.starts_with("Denied: denied: policy `never-eve`"),
        "{text}"
    );
    assert!(text.contains("she is on the list"), "{text}");
}
