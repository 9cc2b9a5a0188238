use serde_json::{Value, json};

use super::{
    server::{Answer, Server},
    *,
};
use crate::model::{ModelErrorKind, StopReason, Usage};

/// The body of a stream: each message as one event under its type's name.
fn sse(messages: &[Value]) -> String {
    messages.iter().fold(String::new(), |body, message| {
        let name = message["type"].as_str().unwrap();
        body + &format!("event: {name}\ndata: {message}\n\n")
    })
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {
        "input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1, "output_tokens": 1
    }}})
}

fn block(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn tool(index: u64, id: &str, name: &str) -> Value {
    block(
        index,
        &json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
    )
}

fn more(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn json_piece(index: u64, json: &str) -> Value {
    more(
        index,
        &json!({"type": "input_json_delta", "partial_json": json}),
    )
}

fn close(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stop(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

/// Two calls whose pieces alternate, a third one without any piece.
fn interleaved() -> Vec<Value> {
    let mut messages = vec![
        start(),
        block(
            0,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        more(0, &json!({"type": "thinking_delta", "thinking": "hm"})),
        more(0, &json!({"type": "signature_delta", "signature": "c2ln"})),
        close(0),
        json!({"type": "ping"}),
        block(1, &json!({"type": "text", "text": ""})),
        more(1, &json!({"type": "text_delta", "text": "Größe: ☂"})),
        close(1),
        tool(2, "toolu_a", "find_order"),
        tool(3, "toolu_b", "get_weather"),
        json_piece(3, ""),
        json_piece(3, "{\"city\":"),
        json_piece(2, "{\"id\""),
        json_piece(3, "\"Köln\"}"),
        close(3),
        json_piece(2, ":\"o-1\"}"),
        close(2),
        tool(4, "toolu_c", "list_orders"),
        close(4),
    ];
    messages.extend(stop("tool_use"));
    messages
}

#[tokio::test]
async fn interleaved_calls_come_as_true_deltas_however_the_bytes_are_cut() {
    for bytes in [1, 7, 64, usize::MAX] {
        let answer = Answer::sse(sse(&interleaved())).in_chunks_of(bytes);
        let server = Server::start([answer]).await;
        let events = events(&model("anthropic/claude-sonnet-4-5", &server), &hello())
            .await
            .unwrap();
        assert_eq!(
            events,
            [
                ModelEvent::ReasoningDelta { text: "hm".into() },
                text("Größe: ☂"),
                started(0, "toolu_a", "find_order"),
                started(1, "toolu_b", "get_weather"),
                delta(1, "{\"city\":"),
                delta(0, "{\"id\""),
                delta(1, "\"Köln\"}"),
                finished(1),
                delta(0, ":\"o-1\"}"),
                finished(0),
                started(2, "toolu_c", "list_orders"),
                delta(2, "{}"),
                finished(2),
                ModelEvent::Usage(Usage {
                    input_tokens: 16,
                    cached_input_tokens: 5,
                    output_tokens: 9,
                    reasoning_tokens: 0,
                }),
                ModelEvent::Ended {
                    stop: StopReason::ToolCalls
                },
            ],
            "in chunks of {bytes}"
        );
    }
}

#[tokio::test]
async fn the_request_is_exact() {
    let mut answer = vec![start()];
    answer.extend(stop("end_turn"));
    let server = Server::start([Answer::sse(sse(&answer))]).await;
    events(&model("anthropic/claude-sonnet-4-5", &server), &history())
        .await
        .unwrap();
    let received = server.received().remove(0);
    assert_eq!(received.path, "/v1/messages");
    assert_eq!(received.headers["x-api-key"], ["sk-secret-0815"]);
    assert_eq!(received.headers["anthropic-version"], ["2023-06-01"]);
    assert_eq!(received.headers["x-team"], ["refunds"]);
    assert_eq!(
        received.body,
        json!({
            "model": "claude-sonnet-4-5",
            "stream": true,
            "max_tokens": 100,
            "system": "Be brief.",
            "tools": [{
                "name": "find_order",
                "description": "Finds an order.",
                "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}},
            }],
            "messages": [
                {"role": "user", "content": "refund o-1"},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "One moment."},
                    // `p:1` is no id that this provider would take, and `same` was used twice.
                    {"type": "tool_use", "id": "c-1", "name": "find_order", "input": {"id": "o-1", "n": 1.0}},
                    {"type": "tool_use", "id": "c-2", "name": "issue_refund", "input": {"unreadable_arguments": "{\"id\": \"o-1\""}},
                    {"type": "tool_use", "id": "c-3", "name": "get_weather", "input": {"unreadable_arguments": ""}},
                ]},
                // One message, in the order of the calls.
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c-1", "content": "{\"total\":5}", "is_error": false},
                    {"type": "tool_result", "tool_use_id": "c-2", "content": "not JSON", "is_error": true},
                    {"type": "tool_result", "tool_use_id": "c-3", "content": "\"rain\"", "is_error": false},
                ]},
                {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
                {"role": "user", "content": "thanks"},
            ],
        })
    );
}

#[tokio::test]
async fn a_stream_without_its_end_is_truncated_wherever_it_stops() {
    let whole = sse(&interleaved());
    let end = whole.find("event: message_stop").unwrap();
    let mut cuts: Vec<usize> = (0..=end).step_by(61).collect();
    // Also with the name of the end event, but not the event.
    cuts.extend([end, end + "event: message_stop\n".len()]);
    let cuts: Vec<usize> = cuts
        .into_iter()
        .filter(|cut| whole.is_char_boundary(*cut))
        .collect();
    let model = named("anthropic/claude-sonnet-4-5");
    for cut in cuts {
        let answer = Answer::sse(&whole[..cut]);
        let server = Server::start([answer.clone(), answer.dropped()]).await;
        let model = model.clone().endpoint(server.url());
        for close in ["in order", "dropped"] {
            let outcome = turn(&model, &hello()).await;
            let error = outcome.expect_err("nothing of the turn may count");
            assert_eq!(
                error.kind(),
                ModelErrorKind::Truncated,
                "{cut}, {close}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn arguments_that_are_not_json_reach_the_gate_unharmed() {
    for raw in [
        "{\"id\": \"o-1\"",
        "null",
        "\"a string\"",
        "{\"a\":1,\"a\":2}",
        "nonsense",
    ] {
        let mut messages = vec![
            start(),
            tool(0, "a", "find_order"),
            json_piece(0, raw),
            close(0),
        ];
        messages.extend(stop("tool_use"));
        let server = Server::start([Answer::sse(sse(&messages))]).await;
        let turn = turn(&model("anthropic/claude-sonnet-4-5", &server), &hello())
            .await
            .unwrap();
        assert_eq!(turn.tool_calls[0].arguments, raw);
    }
}

#[tokio::test]
async fn input_that_comes_whole_in_the_start_is_kept() {
    let mut messages = vec![
        start(),
        block(
            0,
            &json!({"type": "tool_use", "id": "a", "name": "t", "input": {"n": 1}}),
        ),
        close(0),
    ];
    messages.extend(stop("tool_use"));
    let server = Server::start([Answer::sse(sse(&messages))]).await;
    let turn = turn(&model("anthropic/claude-sonnet-4-5", &server), &hello())
        .await
        .unwrap();
    assert_eq!(turn.tool_calls[0].arguments, "{\"n\":1}");
}

#[tokio::test]
async fn a_call_cut_off_by_the_limit_of_tokens_is_told_as_such() {
    let mut messages = vec![
        start(),
        tool(0, "a", "find_order"),
        json_piece(0, "{\"id\": \"o-"),
    ];
    messages.extend(stop("max_tokens"));
    let server = Server::start([Answer::sse(sse(&messages))]).await;
    let turn = turn(&model("anthropic/claude-sonnet-4-5", &server), &hello())
        .await
        .unwrap();
    assert_eq!(turn.stop, StopReason::MaxTokens);
    assert_eq!(turn.tool_calls[0].arguments, "{\"id\": \"o-");
}

#[tokio::test]
async fn events_out_of_order_are_refused() {
    for broken in [
        vec![json_piece(7, "{}")],
        vec![close(7)],
        vec![tool(0, "a", "t"), tool(0, "b", "t")],
        vec![
            tool(0, "a", "t"),
            stop("tool_use")[0].clone(),
            stop("tool_use")[1].clone(),
        ],
    ] {
        let mut messages = vec![start(), block(9, &json!({"type": "text", "text": "x"}))];
        messages.extend(broken);
        let server = Server::start([Answer::sse(sse(&messages))]).await;
        let outcome = turn(&model("anthropic/claude-sonnet-4-5", &server), &hello()).await;
        assert_eq!(
            outcome.unwrap_err().kind(),
            ModelErrorKind::Protocol,
            "{messages:?}"
        );
    }
}
