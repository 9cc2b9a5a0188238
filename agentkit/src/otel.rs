//! Spans of runs in OpenTelemetry (feature `otel`).
//!
//! Runs emit `tracing` spans by the [conventions for generative AI], whether or not anyone
//! listens: `invoke_agent` for each piece of work on a run, and below it `chat` for each answer of
//! the model and `execute_tool` for each call. The [`layer`] hands them to a tracer of the
//! application, which says where they go.
//!
//! A run that waits for a person has no open span. With the layer, the span in which a run was
//! suspended is on record with the suspension, and the span of whoever goes on, in any process and
//! after any time, links to it.
//!
//! [conventions for generative AI]: https://opentelemetry.io/docs/specs/semconv/gen-ai/
//!
//! ```
//! use opentelemetry_sdk::trace::SdkTracerProvider;
//! use tracing_subscriber::layer::SubscriberExt as _;
//!
//! // With an exporter of the application's choice, such as that of `opentelemetry-otlp`.
//! let provider = SdkTracerProvider::builder().build();
//! let subscriber = tracing_subscriber::registry().with(agentkit::otel::layer(&provider));
//! tracing::subscriber::set_global_default(subscriber)?;
//! # Ok::<(), tracing::subscriber::SetGlobalDefaultError>(())
//! ```

use opentelemetry::{
    InstrumentationScope,
    trace::{
        SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, Tracer,
        TracerProvider,
    },
};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::registry::LookupSpan;

/// A layer that hands spans to a tracer of `provider`. It takes the spans of the application too,
/// so that those of runs stand below them.
pub fn layer<S, P>(provider: &P) -> OpenTelemetryLayer<S, P::Tracer>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    P: TracerProvider,
    P::Tracer: Tracer<Span: Send + Sync> + 'static,
{
    let scope = InstrumentationScope::builder(env!("CARGO_PKG_NAME"))
        .with_version(env!("CARGO_PKG_VERSION"))
        .build();
    tracing_opentelemetry::layer().with_tracer(provider.tracer_with_scope(scope))
}

/// What names a span to other processes: `traceparent` of W3C Trace Context. None where no layer
/// listens.
pub(crate) fn parent_text(span: &Span) -> Option<String> {
    let context = span.context();
    let span = context.span();
    let context = span.span_context();
    context.is_valid().then(|| {
        format!(
            "00-{}-{}-{:02x}",
            context.trace_id(),
            context.span_id(),
            context.trace_flags().to_u8()
        )
    })
}

/// Links a span to one that another process named. A text that names none links nothing.
pub(crate) fn link(span: &Span, parent_text: &str) {
    if let Some(context) = read(parent_text) {
        span.add_link(context);
    }
}

fn read(parent_text: &str) -> Option<SpanContext> {
    let mut parts = parent_text.split('-');
    let (Some("00"), Some(trace), Some(span), Some(flags), None) = (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) else {
        return None;
    };
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_names_no_span_is_none() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(read(good).is_some());
        for bad in [
            "",
            "00",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-xyz-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        ] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
