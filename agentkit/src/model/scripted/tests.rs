#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may")]

use serde_json::json;

use super::*;
use crate::model::{Message, ModelEvent, StopReason, Turn, TurnCollector, Usage};

async fn events(model: &ScriptedModel) -> Vec<Result<ModelEvent, ModelError>> {
    let request = ModelRequest::new(vec![Message::user("hello")]);
    model.stream(&request).await.unwrap().collect().await
}

async fn turn(model: &ScriptedModel) -> Result<Turn, ModelError> {
    let mut collector = TurnCollector::new();
    for event in events(model).await {
        collector.push(&event?)?;
    }
    collector.finish()
}

#[tokio::test]
async fn pieces_make_up_the_whole_whatever_their_size() {
    for size in [1, 2, 3, 7, 1000] {
        let model = ScriptedModel::new().pieces_of(size).reply(
            Reply::text("größer ☂")
                .reasoning("hm")
                .call("a", &json!({"x": "ü"}))
                .call_raw("b", "{\"cut")
                .interleaved()
                .usage(Usage {
                    output_tokens: 7,
                    ..Usage::default()
                }),
        );
        let turn = turn(&model).await.unwrap();
        assert_eq!(turn.text, "größer ☂");
        assert_eq!(turn.tool_calls[0].arguments, "{\"x\":\"ü\"}");
        assert_eq!(turn.tool_calls[1].arguments, "{\"cut");
        assert_eq!(turn.tool_calls[1].provider_id, "scripted-2");
        assert_eq!(turn.usage.output_tokens, 7);
        assert_eq!(turn.stop, StopReason::ToolCalls);
    }
}

#[tokio::test]
async fn interleaved_calls_alternate() {
    let reply = Reply::calls()
        .call_raw("a", "12")
        .call_raw("b", "34")
        .interleaved();
    let model = ScriptedModel::new().pieces_of(1).reply(reply);
    let indexes: Vec<u32> = events(&model)
        .await
        .into_iter()
        .filter_map(|event| match event.unwrap() {
            ModelEvent::ToolCallDelta { index, .. } => Some(index),
            _ => None,
        })
        .collect();
    assert_eq!(indexes, [0, 1, 0, 1]);
}

#[tokio::test]
async fn a_turn_without_its_end_does_not_count() {
    let whole = Reply::text("abc").call("a", &json!({}));
    let model = ScriptedModel::new().pieces_of(1).reply(whole.clone());
    let length = events(&model).await.len();
    for count in 0..=length + 1 {
        model.queue(whole.clone().ends_early_after(count));
        let error = turn(&model).await.unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::Truncated, "after {count}");
    }
}

#[tokio::test]
async fn failures_come_where_they_are_ordered() {
    let overloaded = ModelError::new(ModelErrorKind::Overloaded, "no capacity");
    let model = ScriptedModel::new()
        .pieces_of(1)
        .reply(Reply::fails(overloaded.clone()))
        .reply(Reply::text("abc").breaks_after(2, overloaded));
    let request = ModelRequest::default();
    let error = model.stream(&request).await.err().unwrap();
    assert_eq!(error.kind(), ModelErrorKind::Overloaded);
    let events = events(&model).await;
    assert_eq!(events.len(), 3);
    assert!(events[1].is_ok() && events[2].is_err());
}

#[tokio::test]
async fn the_queue_comes_first_then_the_closure_and_all_is_recorded() {
    let model = ScriptedModel::new()
        .reply(Reply::text("queued"))
        .answering(|request| Reply::text(format!("you said {:?}", request.last_user_text())));
    assert_eq!(turn(&model).await.unwrap().text, "queued");
    assert_eq!(turn(&model).await.unwrap().text, "you said Some(\"hello\")");
    assert_eq!(model.requests().len(), 2);
    assert_eq!(model.requests()[1].last_user_text(), Some("hello"));
}

#[tokio::test]
async fn a_script_that_is_over_says_so() {
    let error = ScriptedModel::new()
        .stream(&ModelRequest::default())
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("no reply to request 1"));
}
