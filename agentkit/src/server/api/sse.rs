//! What all server-sent events of the native API have in common.

use std::time::Duration;

use axum::response::sse::{Event, KeepAlive};
use serde_json::Value;

pub(super) fn event(name: &str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}

pub(super) fn keep_alive() -> KeepAlive {
    KeepAlive::new().interval(Duration::from_secs(20))
}
