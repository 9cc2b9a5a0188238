use std::{error::Error as _, time::Duration};

use super::{
    server::{Answer, Server},
    *,
};
use crate::model::{ModelErrorKind, RetryPolicy, Retrying};

const OPENAI: &str = "openai/gpt-5-mini";
const ANTHROPIC: &str = "anthropic/claude-sonnet-4-5";

const GOOD: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

async fn failure(name: &str, answer: Answer) -> ModelError {
    failure_of(&named(name), answer).await
}

async fn failure_of(model: &GenaiModel, answer: Answer) -> ModelError {
    let server = Server::start([answer]).await;
    let model = model.clone().endpoint(server.url());
    turn(&model, &hello()).await.unwrap_err()
}

#[tokio::test]
async fn refusals_are_told_apart_by_status() {
    let cases = [
        (400, ModelErrorKind::InvalidRequest),
        (401, ModelErrorKind::Authentication),
        (402, ModelErrorKind::QuotaExhausted),
        (403, ModelErrorKind::Authentication),
        (404, ModelErrorKind::InvalidRequest),
        (408, ModelErrorKind::Unavailable),
        (413, ModelErrorKind::InvalidRequest),
        (429, ModelErrorKind::RateLimited),
        (500, ModelErrorKind::Unavailable),
        (502, ModelErrorKind::Unavailable),
        (503, ModelErrorKind::Overloaded),
        (529, ModelErrorKind::Overloaded),
    ];
    for name in [OPENAI, ANTHROPIC] {
        let model = named(name);
        for (status, kind) in cases {
            let body = "{\"error\":{\"type\":\"t\",\"message\":\"no, sk-secret-0815\"}}";
            let error = failure_of(&model, Answer::refusal(status, body)).await;
            assert_eq!(error.kind(), kind, "{name} {status}");
            assert_eq!(error.status(), Some(status));
            assert_eq!(error.retry_after(), None);
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("no, [key]"), "{shown}");
            assert!(!shown.contains("0815"), "{shown}");
        }
    }
}

#[tokio::test]
async fn the_wait_that_a_provider_asks_for_is_found() {
    let body = "{\"error\":{\"message\":\"slow down\"}}";
    let limited = || Answer::refusal(429, body);
    let cases = [
        (limited().header("retry-after", "7"), Some(7000)),
        (
            limited()
                .header("retry-after", "7")
                .header("retry-after-ms", "250"),
            Some(250),
        ),
        (limited().header("retry-after", "-1"), None),
        (limited().header("retry-after", "soon"), None),
        (
            Answer::refusal(529, body).header("retry-after", "2"),
            Some(2000),
        ),
    ];
    for (answer, expected) in cases {
        for name in [OPENAI, ANTHROPIC] {
            let error = failure(name, answer.clone()).await;
            assert_eq!(error.retry_after(), expected.map(Duration::from_millis));
        }
    }
}

#[tokio::test]
async fn used_up_money_is_not_a_rate_limit() {
    let body = "{\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"pay\"}}";
    let error = failure(OPENAI, Answer::refusal(429, body)).await;
    assert_eq!(error.kind(), ModelErrorKind::QuotaExhausted);
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn reports_within_the_stream_are_errors() {
    let anthropic = |kind: &str| {
        Answer::sse(format!(
            "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{}}}}\n\n\
             event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"text\",\"text\":\"x\"}}}}\n\n\
             event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"m\"}}}}\n\n"
        ))
    };
    for (kind, expected) in [
        ("overloaded_error", ModelErrorKind::Overloaded),
        ("rate_limit_error", ModelErrorKind::RateLimited),
        ("api_error", ModelErrorKind::Unavailable),
        ("invalid_request_error", ModelErrorKind::InvalidRequest),
    ] {
        assert_eq!(failure(ANTHROPIC, anthropic(kind)).await.kind(), expected);
    }
    let openai = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n\
                  data: {\"error\":{\"type\":\"server_error\",\"message\":\"m\"}}\n\ndata: [DONE]\n\n";
    let error = failure(OPENAI, Answer::sse(openai)).await;
    assert_eq!(error.kind(), ModelErrorKind::Unavailable);
}

#[tokio::test]
async fn an_event_that_is_not_json_is_a_protocol_error() {
    let body = format!("data: {{\"choices\":\n\n{GOOD}");
    let error = failure(OPENAI, Answer::sse(body)).await;
    assert_eq!(error.kind(), ModelErrorKind::Protocol);
    assert!(error.source().is_some());
}

#[tokio::test]
async fn nobody_there_is_unavailable_and_a_bad_endpoint_is_our_mistake() {
    let nobody = GenaiModel::new(OPENAI)
        .unwrap()
        .endpoint("http://127.0.0.1:9/v1")
        .key("k");
    let error = turn(&nobody, &hello()).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Unavailable);
    assert!(error.source().is_some());
    for url in ["not an address", "ftp:"] {
        let model = GenaiModel::new(OPENAI).unwrap().endpoint(url).key("k");
        let error = turn(&model, &hello()).await.unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::InvalidRequest, "{error:?}");
    }
}

#[tokio::test]
async fn a_silent_provider_is_given_up() {
    // It takes the connection, and has no answer.
    let server = Server::start([]).await;
    let model = model(OPENAI, &server).silence(Duration::from_millis(50));
    let error = turn(&model, &hello()).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("in time"), "{error}");
}

#[tokio::test]
async fn retries_end_with_the_first_event() {
    let policy = RetryPolicy {
        first_wait: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let answers = [
        Answer::refusal(529, "{}"),
        Answer::refusal(429, "{}").header("retry-after-ms", "5"),
        Answer::sse(GOOD),
        // Broken after its first event: told, not repeated.
        Answer::sse(GOOD.split_inclusive("\n\n").next().unwrap()),
        Answer::sse(GOOD),
    ];
    let server = Server::start(answers).await;
    let model = Retrying::with_policy(model(OPENAI, &server), policy);
    assert_eq!(turn(&model, &hello()).await.unwrap().text, "hi");
    assert_eq!(server.received().len(), 3);
    let error = turn(&model, &hello()).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Truncated);
    assert_eq!(server.received().len(), 4);
}

#[tokio::test]
async fn calls_without_results_are_refused_before_they_are_sent() {
    let mut request = history();
    request.messages.remove(2);
    let error = turn(&GenaiModel::new(OPENAI).unwrap().key("k"), &request)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::InvalidRequest);
    assert!(
        error
            .to_string()
            .contains("call `c-1` of `find_order` has no result"),
        "{error}"
    );
}
