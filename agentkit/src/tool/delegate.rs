use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ArgumentError, DynTool, Flow, SourceLocation, ToolContext, ToolError, ToolSpec, private, settle,
};
use crate::call::Canonical;

/// What a sub-agent is handed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Task {
    /// The task, in full: the agent knows nothing else of the conversation.
    pub(crate) task: String,
}

/// The tool that stands for a sub-agent. It is gated as any tool; the run machine hands the task
/// to a run of the agent instead of calling it.
pub(crate) struct Delegate {
    spec: ToolSpec,
}

impl Delegate {
    pub(crate) fn new(agent: &str, description: &str, source: Option<SourceLocation>) -> Self {
        let description = if description.trim().is_empty() {
            format!("Hands a task to the agent `{agent}` and gives its answer.")
        } else {
            description.to_owned()
        };
        let mut spec = ToolSpec::new(agent, description, private::input_schema::<Task>());
        spec.policy_schema = private::policy_schema::<Task>();
        spec.source = source;
        Self { spec }
    }
}

impl DynTool for Delegate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn settle(&self, raw: &str) -> Result<Canonical, ArgumentError> {
        settle::arguments::<Task>(raw, &self.spec)
    }

    fn check_answer(&self, raw: &Value) -> Result<Canonical, ArgumentError> {
        settle::answer::<super::Never>(raw, &self.spec.name)
    }

    fn run(
        &self,
        _: &Canonical,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<Flow<Canonical, Canonical>, ToolError>> {
        // Reached by nothing: a delegated call is never `executing`.
        let name = self.spec.name.clone();
        Box::pin(async move {
            Err(ToolError::new(format!(
                "`{name}` is an agent and can only be handed a task by a run"
            )))
        })
    }
}
