//! What the expansion of `#[agent]` does with each of its tools and sub-agents.
//!
//! An entry that is no tool or no agent is one mistake, and everything that is generated for it
//! would be an error of its own. The compiler prints equal errors once, so all of it is said in
//! one form: of a tool `<T as Listed>::…`, of an agent `<A as Agent>::…`.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::{Pending, PendingError, PendingSet, ResumeSet, TaskApproval};
use crate::{
    approval::{PendingCall, PendingKind},
    call::{Canonical, CanonicalError},
    tool::{ArgumentError, DynTool, Tool, erase, private},
};

/// What is needed of a tool in a list. In the words of [`Tool`], since a type that is not listed is
/// no tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on the function of that name, and import it with its module: a tool is \
            the type that `#[tool]` makes beside the function"
)]
pub trait Listed {
    /// The tool's name.
    const NAME: &'static str;

    /// A call of the tool that waits.
    type Pending;

    /// What its questions are answered with.
    type Resume;

    /// The tool.
    fn tool() -> Arc<dyn DynTool>;

    /// Types a pending call of the tool.
    ///
    /// # Errors
    ///
    /// Those of [`Pending::from_call`].
    fn typed(call: PendingCall) -> Result<Self::Pending, PendingError>;

    /// Types the answer to a question of the tool.
    ///
    /// # Errors
    ///
    /// When it does not fit, or the tool asks none.
    fn answer(answer: &Value) -> Result<Self::Resume, ArgumentError>;

    /// The canonical text of an answer.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn encode(answer: &Self::Resume) -> Result<Canonical, CanonicalError>;

    /// Writes the variant that holds a call, for [`fmt::Debug`].
    ///
    /// # Errors
    ///
    /// When the formatter fails.
    fn show(call: &Self::Pending, variant: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl<T: Tool> Listed for T {
    const NAME: &'static str = T::NAME;

    type Pending = Pending<T>;

    type Resume = T::Resume;

    fn tool() -> Arc<dyn DynTool> {
        erase::<T>()
    }

    fn typed(call: PendingCall) -> Result<Pending<T>, PendingError> {
        Pending::from_call(call)
    }

    fn answer(answer: &Value) -> Result<T::Resume, ArgumentError> {
        private::decode_answer::<T>(answer)
    }

    fn encode(answer: &T::Resume) -> Result<Canonical, CanonicalError> {
        private::encode_answer(answer)
    }

    fn show(call: &Pending<T>, variant: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(call, variant, f)
    }
}

/// The sum.
#[expect(clippy::indexing_slicing, reason = "runs in the compiler")]
pub const fn sum(counts: &[usize]) -> usize {
    let (mut i, mut sum) = (0, 0);
    while i < counts.len() {
        sum += counts[i];
        i += 1;
    }
    sum
}

/// The answer to a question of a tool that was added at run time. Whether it fits the tool's
/// schema is checked when it is given.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherAnswer {
    /// The tool's name.
    pub tool: String,
    /// The answer.
    pub answer: Value,
}

/// Writes the variant that holds `held`, for [`fmt::Debug`].
///
/// # Errors
///
/// When the formatter fails.
pub fn show<T: fmt::Debug>(held: &T, variant: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_tuple(variant).field(held).finish()
}

/// A call that waits in a run of the sub-agent `agent` or below it, typed. `None` for any other
/// call.
pub fn pending_below<P: PendingSet>(
    agent: &str,
    call: &PendingCall,
) -> Option<Result<P, PendingError>> {
    call.delegated_to(agent).map(P::from_call)
}

/// A call that hands a task to the sub-agent `agent`. `None` for any other call.
pub fn pending_task(agent: &str, call: &PendingCall) -> Option<Result<TaskApproval, PendingError>> {
    let hands = !call.is_delegated() && call.tool == agent;
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

/// The answer to a question that was asked below the sub-agent `agent`, typed. `None` for a
/// question of anybody else.
pub fn answer_below<R: ResumeSet>(
    agent: &str,
    call: &PendingCall,
    answer: &Value,
) -> Option<Result<R, ArgumentError>> {
    call.delegated_to(agent)
        .map(|call| R::decode_for(&call, answer))
}

/// The answer to a question of a tool that was added at run time.
pub fn other_answer(tool: &str, answer: &Value) -> OtherAnswer {
    OtherAnswer {
        tool: tool.to_owned(),
        answer: answer.clone(),
    }
}
