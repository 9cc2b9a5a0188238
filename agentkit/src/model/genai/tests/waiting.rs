use serde_json::Value;

use super::{
    server::{Answer, Server},
    *,
};

/// What a thread looks like to a model while a call of an earlier run waits for a person.
fn any_news() -> ModelRequest {
    let call = ToolCallPart {
        call: "c-1".parse::<CallId>().unwrap(),
        provider_id: "p_1".into(),
        tool: "pay".into(),
        arguments: "{}".into(),
    };
    let result = ToolResultPart {
        call: call.call.clone(),
        provider_id: call.provider_id.clone(),
        tool: call.tool.clone(),
        status: ResultStatus::Pending,
        content: "no result yet".into(),
    };
    ModelRequest::new(vec![
        Message::user("pay bob"),
        Message::assistant("", vec![call]),
        Message::tool(vec![result]),
        Message::user("any news?"),
    ])
}

/// The messages as a provider is sent them.
async fn sent(name: &str) -> Vec<Value> {
    let server = Server::start([Answer::refusal(400, "{}")]).await;
    let refused = events(&model(name, &server), &any_news()).await;
    assert!(refused.is_err());
    let body = server.received().remove(0).body;
    body["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_call_that_waits_has_a_result_right_after_it_in_both_protocols() {
    let messages = sent("openai/gpt-5-mini").await;
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert_eq!(
        messages[2]["tool_call_id"],
        messages[1]["tool_calls"][0]["id"]
    );
    assert_eq!(messages[2]["content"], "no result yet");

    let messages = sent("anthropic/claude-sonnet-4-5").await;
    let asked = messages[1]["content"].as_array().unwrap();
    let [used] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (&used["type"], &messages[2]["role"]),
        (&"tool_use".into(), &"user".into())
    );
    // Its blocks come first in what the user says next.
    let answered = &messages[2]["content"][0];
    assert_eq!(
        (&answered["type"], &answered["tool_use_id"]),
        (&"tool_result".into(), &used["id"])
    );
    assert!(
        messages[2..]
            .iter()
            .any(|message| message.to_string().contains("any news?"))
    );
}
