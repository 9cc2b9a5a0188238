//! What an application may put around tool calls and model calls.

use std::{future::Future, panic::AssertUnwindSafe};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::time::error::Elapsed;

use super::drive::Work;
use crate::{
    call::{Canonical, Principal, RunId},
    model::{ModelRequest, Turn},
    store::CallRecord,
    tool::DynTool,
};

/// A call as a hook sees it, before the gate does.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HookedCall<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The agent that calls.
    pub agent: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments, decoded into the tool's type and serialised again.
    pub arguments: &'a Value,
    /// On whose behalf the run acts.
    pub requester: &'a Principal,
}

/// What a hook says of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Before {
    /// It goes on to the next hook and to the gate.
    Proceed,
    /// It goes on with these arguments, which are decoded as if the model had written them.
    Rewrite(Value),
    /// It does not run and nobody is asked; the model is given this text as its result.
    Block(String),
}

/// What a hook fails with; the call does not run then.
pub type HookError = Box<dyn std::error::Error + Send + Sync>;

/// Runs around tool calls and model calls, in the order in which hooks were added.
///
/// A hook acts on a call before the gate does and before anyone is asked, so that what a person
/// sees is what runs. Everything else a hook is told is for its information: it can change
/// nothing, and one that panics loses nothing. The run waits for each of them, and for none longer
/// than [`Settings::patience`](super::Settings::patience).
#[async_trait]
pub trait Hook: Send + Sync {
    /// Before the gate: the call may be blocked or rewritten.
    ///
    /// # Errors
    ///
    /// When the hook cannot say. The call is blocked then, as it is when the hook panics or takes
    /// too long.
    async fn before_tool_call(&self, call: HookedCall<'_>) -> Result<Before, HookError> {
        let _ = call;
        Ok(Before::Proceed)
    }

    /// After a call has its outcome, or asked a question, and that is durable.
    async fn after_tool_call(&self, call: &CallRecord) {
        let _ = call;
    }

    /// Before the model is asked.
    async fn before_model_call(&self, request: &ModelRequest) {
        let _ = request;
    }

    /// After the model has given a whole answer, before anything of it is used.
    async fn after_model_call(&self, turn: &Turn) {
        let _ = turn;
    }
}

/// What the hooks made of a call.
pub(super) enum Hooked {
    Proceed(Canonical),
    Block {
        arguments: Canonical,
        output: String,
    },
    /// What a hook made of the arguments does not fit the tool.
    Unfit(String),
}

impl Work {
    /// Lets the hooks see a call, one after another, each what the one before made of it.
    pub(super) async fn before_tool_call(
        &self,
        tool: &dyn DynTool,
        mut arguments: Canonical,
    ) -> Hooked {
        let name = &tool.spec().name;
        for hook in &*self.runtime.hooks {
            let Ok(value) = arguments.to_value() else {
                return Hooked::Unfit("the arguments cannot be read".to_owned());
            };
            let call = HookedCall {
                run: &self.run.id,
                agent: &self.runtime.agent,
                tool: name,
                arguments: &value,
                requester: &self.run.requester,
            };
            // Within a future of ours: a hook may panic before it gives its own.
            let said = async { hook.before_tool_call(call).await };
            let said = self.in_time(AssertUnwindSafe(said).catch_unwind()).await;
            match said.unwrap_or_else(|late| Ok(Err(late.into()))) {
                Ok(Ok(Before::Proceed)) => {}
                Ok(Ok(Before::Block(output))) => return Hooked::Block { arguments, output },
                Ok(Ok(Before::Rewrite(value))) => match tool.settle(&value.to_string()) {
                    Ok(rewritten) => arguments = rewritten,
                    Err(error) => {
                        return Hooked::Unfit(format!("a hook rewrote the call: {error}"));
                    }
                },
                // Fail closed: a guard that cannot say has not let the call pass.
                Ok(Err(error)) => {
                    tracing::warn!(run = %self.run.id, tool = %name, %error, "a hook failed");
                    let output = "blocked: a check of the application failed".to_owned();
                    return Hooked::Block { arguments, output };
                }
                Err(_) => {
                    tracing::warn!(run = %self.run.id, tool = %name, "a hook panicked");
                    let output = "blocked: a check of the application failed".to_owned();
                    return Hooked::Block { arguments, output };
                }
            }
        }
        Hooked::Proceed(arguments)
    }

    pub(super) async fn after_tool_call(&self, call: &CallRecord) {
        for hook in &*self.runtime.hooks {
            self.observe(async { hook.after_tool_call(call).await })
                .await;
        }
    }

    pub(super) async fn before_model_call(&self, request: &ModelRequest) {
        for hook in &*self.runtime.hooks {
            self.observe(async { hook.before_model_call(request).await })
                .await;
        }
    }

    pub(super) async fn after_model_call(&self, turn: &Turn) {
        for hook in &*self.runtime.hooks {
            self.observe(async { hook.after_model_call(turn).await })
                .await;
        }
    }

    async fn observe(&self, seen: impl Future<Output = ()> + Send) {
        match self.in_time(AssertUnwindSafe(seen).catch_unwind()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => tracing::warn!(run = %self.run.id, "a hook panicked; nothing was lost"),
            Err(late) => tracing::warn!(run = %self.run.id, %late, "a hook; nothing was lost"),
        }
    }

    async fn in_time<T>(&self, hook: impl Future<Output = T>) -> Result<T, Elapsed> {
        tokio::time::timeout(self.runtime.settings.patience, hook).await
    }
}
