use crate::{
    agent::PendingError,
    approval::{Decision, PendingCall, PendingKind, Verdict},
    call::{Canonical, CanonicalError},
    tool::Task,
};

/// A task that an agent wants to hand to a sub-agent, and that needs an approval first. Deciding
/// consumes it, so that it is decided once.
#[must_use = "the call waits until it is decided"]
#[derive(Debug)]
pub struct TaskApproval {
    /// The task, word for word as the sub-agent will be told.
    pub task: String,
    call: PendingCall,
}

impl TaskApproval {
    /// Types the pending call by which a task is handed over.
    ///
    /// # Errors
    ///
    /// When the call is none that waits for an approval, or what is stored is no task.
    pub fn from_call(call: PendingCall) -> Result<Self, PendingError> {
        match call.kind {
            PendingKind::Approval => {}
            PendingKind::InDoubt => return Err(PendingError::InDoubt(Box::new(call))),
            PendingKind::Question => return Err(PendingError::unknown_tool(&call)),
        }
        match call.arguments.decode::<Task>() {
            Ok(Task { task }) => Ok(Self { task, call }),
            Err(source) => Err(PendingError::Unfit {
                tool: call.tool,
                call: call.call.to_string(),
                part: "arguments",
                source,
            }),
        }
    }

    /// The call as the store knows it: who asked, why, since when, which approvals there are.
    pub fn call(&self) -> &PendingCall {
        &self.call
    }

    /// The task may be handed over as it is.
    pub fn approve(self) -> Decision {
        self.call.decision(Verdict::Approve)
    }

    /// The task must not be handed over. The model receives the reason; a blank one is none.
    pub fn decline(self, reason: impl Into<String>) -> Decision {
        let reason = Some(reason.into()).filter(|reason| !reason.trim().is_empty());
        self.call.decision(Verdict::Decline { reason })
    }

    /// Another task is to be handed over instead. It is gated and fingerprinted anew.
    ///
    /// # Errors
    ///
    /// When the text has no canonical form.
    pub fn amend(self, task: impl Into<String>) -> Result<Decision, CanonicalError> {
        let arguments = Canonical::of(&Task { task: task.into() })?;
        let reason = None;
        Ok(self.call.decision(Verdict::Amend { arguments, reason }))
    }

    /// The call is withdrawn.
    pub fn cancel(self) -> Decision {
        self.call.decision(Verdict::Cancel)
    }
}
