#![allow(clippy::unwrap_used, reason = "tests may")]

use tokio::time::Instant;

use super::*;
use crate::model::{
    ModelErrorKind, ModelEvent,
    scripted::{Reply, ScriptedModel},
};

fn overloaded() -> ModelError {
    ModelError::new(ModelErrorKind::Overloaded, "no capacity")
}

async fn drain(model: &impl ChatModel) -> Result<Vec<ModelEvent>, ModelError> {
    let events = model.stream(&ModelRequest::default()).await?;
    events.collect::<Vec<_>>().await.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn failures_before_the_first_event_are_repeated_with_growing_waits() {
    let script = ScriptedModel::new()
        .reply(Reply::fails(overloaded()))
        .reply(Reply::text("x").breaks_after(0, overloaded()))
        .reply(Reply::text("x").ends_early_after(0))
        .reply(Reply::text("here"));
    let start = Instant::now();
    let events = drain(&Retrying::new(script.clone())).await.unwrap();
    assert_eq!(
        events.first(),
        Some(&ModelEvent::TextDelta {
            text: "here".into()
        })
    );
    assert_eq!(events.len(), 3, "the first event is not lost: {events:?}");
    assert_eq!(script.requests().len(), 4);
    let waited = start.elapsed();
    // Half to all of 0.5 + 1 + 2 seconds.
    assert!(
        (Duration::from_millis(1750)..=Duration::from_millis(3510)).contains(&waited),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_and_the_last_error_is_told() {
    let script = ScriptedModel::new().answering(|_| Reply::fails(overloaded()));
    let error = drain(&Retrying::new(script.clone())).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Overloaded);
    assert_eq!(script.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_after_the_first_event() {
    let script = ScriptedModel::new()
        .reply(Reply::text("x").breaks_after(1, overloaded()))
        .reply(Reply::text("y"));
    let error = drain(&Retrying::new(script.clone())).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Overloaded);
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_get_better_is_not_repeated() {
    for kind in [
        ModelErrorKind::Authentication,
        ModelErrorKind::InvalidRequest,
        ModelErrorKind::Protocol,
        ModelErrorKind::QuotaExhausted,
    ] {
        let script =
            ScriptedModel::new().answering(move |_| Reply::fails(ModelError::new(kind, "no")));
        let start = Instant::now();
        assert!(drain(&Retrying::new(script.clone())).await.is_err());
        assert_eq!(script.requests().len(), 1, "{kind:?}");
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_and_bounded() {
    let limited = |seconds| {
        Reply::fails(
            ModelError::new(ModelErrorKind::RateLimited, "slow down")
                .with_retry_after(Duration::from_secs(seconds)),
        )
    };
    let script = ScriptedModel::new()
        .reply(limited(20))
        .reply(limited(61))
        .reply(Reply::text("never"));
    let start = Instant::now();
    let error = drain(&Retrying::new(script.clone())).await.unwrap_err();
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(20), "{waited:?}");
    assert!(waited < Duration::from_secs(21), "{waited:?}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(61)));
    assert_eq!(script.requests().len(), 2);
}
