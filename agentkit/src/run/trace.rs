//! Spans by the OpenTelemetry conventions for generative AI
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>).
//!
//! A span covers one piece of work on a run and ends when the run is put down. Whoever continues
//! the run opens another one of the same `gen_ai.conversation.id` and `agentkit.run.id`;
//! `agentkit.run.epoch` says which piece it is, and is one more than that of the piece before. With
//! the feature `otel` it links to the span in which the run was suspended.
//! Neither arguments nor texts are recorded.

use tracing::{Span, field::Empty, info_span};

use super::{Ending, Runtime, drive::Failure};
#[cfg(feature = "otel")]
use crate::{journal::Event, store::Lease};
use crate::{
    model::{StopReason, Turn},
    store::{CallRecord, RunRecord},
};

pub(super) fn invoke_agent(runtime: &Runtime, run: &RunRecord, epoch: i64) -> Span {
    let conversation = run.thread.as_deref().unwrap_or(run.root.as_str());
    info_span!(
        "invoke_agent",
        otel.name = format!("invoke_agent {}", runtime.agent),
        otel.status_code = Empty,
        error.r#type = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = runtime.model.name().provider(),
        gen_ai.request.model = runtime.model.name().model(),
        gen_ai.agent.name = runtime.agent,
        gen_ai.conversation.id = conversation,
        agentkit.run.id = run.id.as_str(),
        agentkit.run.root = run.root.as_str(),
        agentkit.run.epoch = epoch,
        agentkit.run.ending = Empty,
    )
}

/// The present span as other processes may link to it, where one is exported.
#[cfg(feature = "otel")]
pub(super) fn name_of_current() -> Option<String> {
    crate::otel::parent_text(&Span::current())
}

/// Nothing is exported without the feature `otel`.
#[cfg(not(feature = "otel"))]
pub(super) const fn name_of_current() -> Option<String> {
    None
}

/// Links the span of a piece of work to that in which the run was suspended last.
#[cfg(feature = "otel")]
pub(super) async fn link_to_suspension(span: &Span, runtime: &Runtime, lease: &Lease) {
    if lease.epoch <= 1 || span.is_disabled() {
        return;
    }
    match runtime.store.last_suspension(&lease.run).await {
        Ok(Some(Event::RunSuspended {
            span: Some(name), ..
        })) => crate::otel::link(span, &name),
        Ok(_) => {}
        // A trace that lacks a link is no reason to leave the run as it is.
        Err(error) => tracing::warn!(run = %lease.run, %error, "reading the last suspension"),
    }
}

/// How a piece of work ended.
pub(super) fn put_down(span: &Span, result: &Result<Ending, Failure>) {
    match result {
        Ok(Ending::Suspended { .. }) => {
            span.record("agentkit.run.ending", "suspended");
        }
        Ok(Ending::Finished { reason, .. }) => {
            span.record("agentkit.run.ending", reason.as_str());
        }
        Err(failure) => failed(span, failure),
    }
}

pub(super) fn chat(runtime: &Runtime) -> Span {
    let model = runtime.model.name();
    info_span!(
        "chat",
        otel.name = format!("chat {}", model.model()),
        otel.kind = "client",
        otel.status_code = Empty,
        error.r#type = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.provider(),
        gen_ai.request.model = model.model(),
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
    )
}

pub(super) fn answered(span: &Span, turn: &Turn) {
    let stop = match &turn.stop {
        StopReason::EndTurn | StopReason::StopSequence => "stop",
        StopReason::ToolCalls => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::Refused => "content_filter",
        StopReason::Other(other) => other,
    };
    span.record("gen_ai.response.finish_reasons", stop);
    span.record("gen_ai.usage.input_tokens", turn.usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", turn.usage.output_tokens);
}

pub(super) fn failed(span: &Span, failure: &Failure) {
    span.record("otel.status_code", "ERROR");
    span.record(
        "error.type",
        match failure {
            Failure::Store(_) => "store",
            Failure::Model(_) => "model",
            Failure::Stopped => "stopped",
        },
    );
}

pub(super) fn execute_tool(call: &CallRecord) -> Span {
    info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {}", call.tool),
        otel.status_code = Empty,
        error.r#type = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.tool,
        gen_ai.tool.type = "function",
        gen_ai.tool.call.id = call.id.as_str(),
    )
}

pub(super) fn tool_failed(span: &Span) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", "tool");
}
