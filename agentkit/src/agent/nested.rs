//! What waits below an agent, and beside its declared tools, as the enums of `#[agent]` hold it.

use serde_json::Value;

use super::{Agent, PendingError, PendingSet, ResumeSet, TaskApproval};
use crate::{
    approval::{PendingCall, PendingKind},
    tool::ArgumentError,
};

/// The answer to a question of a tool that was added at run time. Whether it fits the tool's
/// schema is checked when it is given.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherAnswer {
    /// The tool's name.
    pub tool: String,
    /// The answer.
    pub answer: Value,
}

/// A call that waits in a run of the sub-agent `A` or below it, typed. `None` for any other call.
pub fn pending_below<A: Agent>(call: &PendingCall) -> Option<Result<A::Pending, PendingError>> {
    call.delegated_to(&A::name()).map(A::Pending::from_call)
}

/// A call that hands a task to the sub-agent `A`. `None` for any other call.
pub fn pending_task<A: Agent>(call: &PendingCall) -> Option<Result<TaskApproval, PendingError>> {
    let hands = !call.is_delegated() && call.tool == A::name();
    hands.then(|| TaskApproval::from_call(call.clone()))
}

/// A call of a tool that was added at run time, as it is.
///
/// # Errors
///
/// When the call is of a sub-agent that is not declared, or in doubt.
pub fn pending_other(call: PendingCall) -> Result<PendingCall, PendingError> {
    if call.is_delegated() {
        return Err(PendingError::unknown_tool(&call));
    }
    match call.kind {
        PendingKind::InDoubt => Err(PendingError::InDoubt(Box::new(call))),
        PendingKind::Approval | PendingKind::Question => Ok(call),
    }
}

/// The answer to a question that was asked below the sub-agent `A`, typed. `None` for a question
/// of anybody else.
pub fn answer_below<A: Agent>(
    call: &PendingCall,
    answer: &Value,
) -> Option<Result<A::Resume, ArgumentError>> {
    call.delegated_to(&A::name())
        .map(|call| A::Resume::decode_for(&call, answer))
}

/// The answer to a question of a tool that was added at run time.
pub fn other_answer(tool: &str, answer: &Value) -> OtherAnswer {
    OtherAnswer {
        tool: tool.to_owned(),
        answer: answer.clone(),
    }
}
