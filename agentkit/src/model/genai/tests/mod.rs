#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

//! The two protocols against a server on the loopback interface, down to the bytes.

mod chat_completions;
mod failures;
mod messages;
mod offers;
mod server;
mod waiting;

use futures_util::StreamExt;
use serde_json::json;

use super::GenaiModel;
use crate::{
    call::CallId,
    model::{
        ChatModel, Message, ModelError, ModelEvent, ModelRequest, ResultStatus, ToolCallPart,
        ToolOffer, ToolResultPart, Turn, TurnCollector,
    },
};

/// A model without an endpoint, under a key that must not show up anywhere. Making one loads the
/// system's certificates, so loops share it.
fn named(name: &str) -> GenaiModel {
    GenaiModel::new(name)
        .unwrap()
        .key("sk-secret-0815")
        .header("x-team", "refunds")
}

/// A model that talks to the server.
fn model(name: &str, server: &server::Server) -> GenaiModel {
    named(name).endpoint(server.url())
}

fn hello() -> ModelRequest {
    ModelRequest::new(vec![Message::user("hello")])
}

async fn events(
    model: &impl ChatModel,
    request: &ModelRequest,
) -> Result<Vec<ModelEvent>, ModelError> {
    let events = model.stream(request).await?;
    events.collect::<Vec<_>>().await.into_iter().collect()
}

async fn turn(model: &impl ChatModel, request: &ModelRequest) -> Result<Turn, ModelError> {
    let mut collector = TurnCollector::new();
    let mut events = model.stream(request).await?;
    while let Some(event) = events.next().await {
        collector.push(&event?)?;
    }
    collector.finish()
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::TextDelta { text: text.into() }
}

fn started(index: u32, provider_id: &str, tool: &str) -> ModelEvent {
    ModelEvent::ToolCallStarted {
        index,
        provider_id: provider_id.into(),
        tool: tool.into(),
    }
}

fn delta(index: u32, json: &str) -> ModelEvent {
    ModelEvent::ToolCallDelta {
        index,
        json: json.into(),
    }
}

fn finished(index: u32) -> ModelEvent {
    ModelEvent::ToolCallFinished { index }
}

/// A conversation with all that history can hold: three parallel calls, of which one has broken
/// arguments and two share a provider's id; results that came back in another order.
fn history() -> ModelRequest {
    let call = |id: &str, provider_id: &str, tool: &str, arguments: &str| ToolCallPart {
        call: id.parse::<CallId>().unwrap(),
        provider_id: provider_id.into(),
        tool: tool.into(),
        arguments: arguments.into(),
    };
    let result = |call: &ToolCallPart, status, content: &str| ToolResultPart {
        call: call.call.clone(),
        provider_id: call.provider_id.clone(),
        tool: call.tool.clone(),
        status,
        content: content.into(),
    };
    let calls = vec![
        call("c-1", "p:1", "find_order", "{ \"id\":\"o-1\", \"n\":1.0 }"),
        call("c-2", "same", "issue_refund", "{\"id\": \"o-1\""),
        call("c-3", "same", "get_weather", ""),
    ];
    let results = vec![
        result(&calls[2], ResultStatus::Succeeded, "\"rain\""),
        result(&calls[0], ResultStatus::Succeeded, "{\"total\":5}"),
        result(&calls[1], ResultStatus::Invalid, "not JSON"),
    ];
    ModelRequest::new(vec![
        Message::user("refund o-1"),
        Message::assistant("One moment.", calls),
        Message::tool(results),
        Message::assistant("Done.", vec![]),
        Message::user("thanks"),
    ])
    .instructions("Be brief.")
    .max_output_tokens(100)
    .tools(vec![ToolOffer {
        name: "find_order".into(),
        description: "Finds an order.".into(),
        input_schema: json!({"type": "object", "properties": {"id": {"type": "string"}}}),
    }])
}

#[test]
fn secrets_do_not_show() {
    let model = GenaiModel::new("openai/gpt-5-mini")
        .unwrap()
        .key("sk-secret-0815")
        .header("authorization", "Bearer sk-secret-0815");
    let shown = format!("{model:?}");
    assert!(shown.contains("gpt-5-mini"), "{shown}");
    assert!(!shown.contains("0815"), "{shown}");
}

#[test]
fn providers_that_cannot_be_read_are_refused_by_name() {
    for name in [
        "gemini/gemini-3",
        "ollama/qwen3",
        "openai_resp/gpt-5",
        "nobody/x",
    ] {
        let error = GenaiModel::new(name).unwrap_err().to_string();
        let provider = name.split('/').next().unwrap();
        assert!(error.contains(&format!("`{provider}`")), "{error}");
        assert!(error.contains("anthropic"), "{error}");
    }
}
