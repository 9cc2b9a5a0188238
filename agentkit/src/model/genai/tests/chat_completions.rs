use serde_json::{Value, json};

use super::{
    server::{Answer, Server},
    *,
};
use crate::model::{ModelErrorKind, StopReason, Usage};

/// The body of a stream: each chunk as one event.
fn sse(chunks: &[Value]) -> String {
    chunks.iter().fold(String::new(), |body, chunk| {
        body + &format!("data: {chunk}\n\n")
    })
}

fn done(chunks: &[Value]) -> String {
    sse(chunks) + "data: [DONE]\n\n"
}

fn piece(delta: &Value) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn stop(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn usage() -> Value {
    json!({"choices": [], "usage": {
        "prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 3}
    }})
}

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    piece(&json!({"tool_calls": [
        {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    ]}))
}

fn more(index: u64, arguments: &str) -> Value {
    piece(&json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
}

fn interleaved() -> Vec<Value> {
    vec![
        piece(&json!({"role": "assistant", "content": "", "refusal": null})),
        piece(&json!({"reasoning_content": "hm"})),
        piece(&json!({"content": "Größe: "})),
        piece(&json!({"content": "☂"})),
        call(0, "call_a", "find_order", ""),
        call(1, "call_b", "get_weather", ""),
        more(1, "{\"city\":"),
        more(0, "{\"id\""),
        // One event with a piece for each.
        piece(&json!({"tool_calls": [
            {"index": 0, "function": {"arguments": ":\"o-1\"}"}},
            {"index": 1, "function": {"arguments": "\"Köln\"}"}},
        ]})),
        stop("tool_calls"),
        usage(),
    ]
}

#[tokio::test]
async fn interleaved_calls_come_as_true_deltas_however_the_bytes_are_cut() {
    for bytes in [1, 7, 64, usize::MAX] {
        let answer = Answer::sse(done(&interleaved())).in_chunks_of(bytes);
        let server = Server::start([answer]).await;
        let events = events(&model("openai/gpt-5-mini", &server), &hello())
            .await
            .unwrap();
        assert_eq!(
            events,
            [
                ModelEvent::ReasoningDelta { text: "hm".into() },
                text("Größe: "),
                text("☂"),
                started(0, "call_a", "find_order"),
                started(1, "call_b", "get_weather"),
                delta(1, "{\"city\":"),
                delta(0, "{\"id\""),
                delta(0, ":\"o-1\"}"),
                delta(1, "\"Köln\"}"),
                finished(0),
                finished(1),
                ModelEvent::Usage(Usage {
                    input_tokens: 20,
                    cached_input_tokens: 8,
                    output_tokens: 9,
                    reasoning_tokens: 3,
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
    let server = Server::start([Answer::sse(done(&[stop("stop")]))]).await;
    events(&model("openai/gpt-5-mini", &server), &history())
        .await
        .unwrap();
    let received = server.received().remove(0);
    assert_eq!(received.path, "/v1/chat/completions");
    assert_eq!(received.headers["authorization"], ["Bearer sk-secret-0815"]);
    assert_eq!(received.headers["x-team"], ["refunds"]);
    assert_eq!(
        received.body,
        json!({
            "model": "gpt-5-mini",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_completion_tokens": 100,
            "tools": [{"type": "function", "function": {
                "name": "find_order",
                "description": "Finds an order.",
                "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
                "strict": false,
            }}],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "refund o-1"},
                {"role": "assistant", "content": "One moment.", "tool_calls": [
                    {"id": "p:1", "type": "function", "function": {
                        // Byte for byte what the model wrote.
                        "name": "find_order", "arguments": "{ \"id\":\"o-1\", \"n\":1.0 }"
                    }},
                    // The provider used this id twice: ours takes its place.
                    {"id": "c-2", "type": "function", "function": {
                        "name": "issue_refund",
                        "arguments": "{\"unreadable_arguments\":\"{\\\"id\\\": \\\"o-1\\\"\"}"
                    }},
                    {"id": "c-3", "type": "function", "function": {
                        "name": "get_weather", "arguments": "{\"unreadable_arguments\":\"\"}"
                    }},
                ]},
                // In the order of the calls, right after them.
                {"role": "tool", "tool_call_id": "p:1", "content": "{\"total\":5}"},
                {"role": "tool", "tool_call_id": "c-2", "content": "not JSON"},
                {"role": "tool", "tool_call_id": "c-3", "content": "\"rain\""},
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": "thanks"},
            ],
        })
    );
}

#[tokio::test]
async fn a_model_is_named_as_it_is_written() {
    let server = Server::start([Answer::sse(done(&[stop("stop")]))]).await;
    events(&model("openai/qwen-max", &server), &hello())
        .await
        .unwrap();
    let body = server.received().remove(0).body;
    assert_eq!(body["model"], "qwen-max");
    assert_eq!(body.get("reasoning_effort"), None);
}

#[tokio::test]
async fn a_stream_without_its_end_is_truncated_wherever_it_stops() {
    let whole = done(&interleaved());
    let marker = whole.find("data: [DONE]").unwrap();
    let mut cuts: Vec<usize> = (0..=marker).step_by(41).collect();
    cuts.push(marker);
    let cuts: Vec<usize> = cuts
        .into_iter()
        .filter(|cut| whole.is_char_boundary(*cut))
        .collect();
    let model = named("openai/gpt-5-mini");
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
async fn an_end_marker_without_a_reason_to_stop_is_truncated() {
    let chunks = [call(0, "call_a", "find_order", "{}")];
    let server = Server::start([Answer::sse(done(&chunks))]).await;
    let error = turn(&model("openai/gpt-5-mini", &server), &hello())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Truncated);
}

#[tokio::test]
async fn arguments_that_are_not_json_reach_the_gate_unharmed() {
    for raw in [
        "{\"id\": \"o-1\"",
        "",
        "null",
        "\"a string\"",
        "{\"a\":1,\"a\":2}",
        "nonsense",
        "1e999",
    ] {
        let chunks = [
            call(0, "call_a", "find_order", ""),
            more(0, raw),
            call(1, "call_b", "get_weather", "{\"city\":\"Köln\"}"),
            stop("tool_calls"),
        ];
        let server = Server::start([Answer::sse(done(&chunks))]).await;
        let turn = turn(&model("openai/gpt-5-mini", &server), &hello())
            .await
            .unwrap();
        assert_eq!(turn.tool_calls[0].arguments, raw);
        assert_eq!(turn.tool_calls[1].arguments, "{\"city\":\"Köln\"}");
    }
}

#[tokio::test]
async fn habits_of_other_providers_are_understood() {
    // All calls under index 0; id and name repeated; arguments as an object; no ids at all.
    let zero = [
        call(0, "a", "first", "{\"n\""),
        call(0, "a", "first", ":1}"),
        call(0, "b", "second", "{}"),
        stop("stop"),
    ];
    let object = [
        piece(
            &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "first", "arguments": {"n": 1}}}]}),
        ),
        piece(
            &json!({"tool_calls": [{"index": 1, "function": {"name": "second", "arguments": "{}"}}]}),
        ),
        stop("tool_calls"),
    ];
    for (chunks, ids) in [(&zero[..], ["a", "b"]), (&object[..], ["a", ""])] {
        let server = Server::start([Answer::sse(done(chunks))]).await;
        let turn = turn(&model("groq/x", &server), &hello()).await.unwrap();
        let calls: Vec<_> = turn
            .tool_calls
            .iter()
            .map(|call| {
                (
                    call.provider_id.as_str(),
                    call.tool.as_str(),
                    call.arguments.as_str(),
                )
            })
            .collect();
        assert_eq!(
            calls,
            [(ids[0], "first", "{\"n\":1}"), (ids[1], "second", "{}")]
        );
        assert_eq!(turn.stop, StopReason::ToolCalls);
    }
}

#[tokio::test]
async fn a_call_cut_off_by_the_limit_of_tokens_is_told_as_such() {
    let chunks = [call(0, "a", "find_order", "{\"id\": \"o-"), stop("length")];
    let server = Server::start([Answer::sse(done(&chunks))]).await;
    let turn = turn(&model("openai/gpt-5-mini", &server), &hello())
        .await
        .unwrap();
    assert_eq!(turn.stop, StopReason::MaxTokens);
    assert_eq!(turn.tool_calls[0].arguments, "{\"id\": \"o-");
}
