//! The cases of `#[tool]` and `#[agent]`: what must work, one test a case. The number of each
//! case is part of its name. What must not compile is in `fail/`, beside the errors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::pedantic,
    clippy::non_minimal_cfg,
    unreachable_pub,
    unused_qualifications,
    reason = "the cases are written as odd as people may write them"
)]

mod agents;
mod arguments;
mod cases;
mod declared;
mod fixtures;
mod hostile;
mod methods;
mod mistakes;
mod outputs;
mod table;

use std::sync::Arc;

use agentkit::{
    call::{CallId, Principal, RunId},
    tool::{
        ArgumentError, Cancellation, Contexts, Flow, RunContext, Tool, ToolContext, ToolError,
        erase,
    },
};
use serde_json::Value;

/// The context of one call.
fn context(contexts: Contexts, answer: Option<Value>) -> ToolContext {
    let run = RunContext::new(
        RunId::new(),
        CallId::new(),
        "key-1",
        Principal::new("ada", "test"),
        Cancellation::new(),
    );
    let answer = answer.map(|answer| agentkit::call::Canonical::of(&answer).unwrap());
    ToolContext::new(run, Arc::new(contexts), answer)
}

/// Calls a tool as the run machine does: from a model's text to JSON.
async fn call_with<T: Tool>(raw: &str, cx: ToolContext) -> Result<Flow<Value, Value>, ToolError> {
    let tool = erase::<T>();
    let args = tool.settle(raw).unwrap();
    Ok(match tool.run(&args, cx).await? {
        Flow::Done(value) => Flow::Done(value.to_value().unwrap()),
        Flow::Suspend(value) => Flow::Suspend(value.to_value().unwrap()),
    })
}

/// The result of a tool that needs nothing and is done.
async fn call<T: Tool>(raw: &str) -> Value {
    match call_with::<T>(raw, context(Contexts::new(), None))
        .await
        .unwrap()
    {
        Flow::Done(value) => value,
        Flow::Suspend(question) => panic!("asks {question}"),
    }
}

/// The effective arguments.
fn settle<T: Tool>(raw: &str) -> Result<String, ArgumentError> {
    erase::<T>()
        .settle(raw)
        .map(|canonical| canonical.to_string())
}

/// The names of the properties of the input schema.
fn properties<T: Tool>() -> Vec<String> {
    let schema = T::spec().input_schema;
    schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}
