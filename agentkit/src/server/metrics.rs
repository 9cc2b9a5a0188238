use std::{
    fmt::Write as _,
    sync::atomic::{AtomicI64, Ordering},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Answered {
    /// The route's pattern, never the path: ids do not belong into metrics.
    pub(super) route: String,
    pub(super) status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct DecidedLabels {
    pub(super) decision: String,
    pub(super) outcome: String,
}

/// What the server counts.
pub(super) struct Metrics {
    registry: Registry,
    pub(super) requests: Family<Answered, Counter>,
    pub(super) decisions: Family<DecidedLabels, Counter>,
    pub(super) runs: Counter,
    pub(super) streams: Gauge,
    pub(super) pending: Gauge<i64, AtomicI64>,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("agentkit");
        let (requests, decisions) = (Family::default(), Family::default());
        let (runs, streams, pending) = (Counter::default(), Gauge::default(), Gauge::default());
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register("decisions", "Decisions received", decisions.clone());
        registry.register("runs_started", "Runs started", runs.clone());
        registry.register("streams_open", "Streams open", streams.clone());
        registry.register(
            "pending_calls",
            "Calls that wait for people",
            pending.clone(),
        );
        Self {
            registry,
            requests,
            decisions,
            runs,
            streams,
            pending,
        }
    }

    /// The metrics in the OpenMetrics text form.
    pub(super) fn text(&self, pending: i64) -> String {
        self.pending.inner().store(pending, Ordering::Relaxed);
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            let _ = write!(text, "# EOF");
        }
        text
    }
}
