//! What does not stand in the way of a load and is still worth a look.

use crate::decision::Question;
use crate::load_error::Finding;
use crate::policy::{LoadedPolicy, Scope};
use crate::tool::Tool;

/// All warnings about a set.
pub(crate) fn warnings(tools: &[Tool], policies: &[LoadedPolicy]) -> Vec<Finding> {
    let mut warnings = Vec::new();
    for tool in tools {
        approvable(tool, policies, &mut warnings);
    }
    warnings
}

/// A tool whose calls can be made to wait although nobody can end the wait.
fn approvable(tool: &Tool, policies: &[LoadedPolicy], warnings: &mut Vec<Finding>) {
    let permits = |question: Question| {
        let action = question.action(tool.name());
        let ancestors = tool.ancestors(question);
        policies.iter().any(|policy| {
            !policy.log_only
                && matches!(policy.scope, Scope::Permit { .. })
                && policy.answers(question, &action, &ancestors)
        })
    };
    if permits(Question::Approve) {
        return;
    }
    let action = Question::Approve.action(tool.name());
    let remedy = format!("permit someone `Action::\"{action}\"`");
    if tool.declaration.require_approval {
        warnings.push(
            Finding::about("the tool demands approval and no policy lets anyone approve")
                .suggest(remedy)
                .tool_named(tool.name()),
        );
    } else if permits(Question::Approved) {
        warnings.push(
            Finding::about("policies demand approval and no policy lets anyone approve")
                .suggest(remedy)
                .tool_named(tool.name()),
        );
    }
}
