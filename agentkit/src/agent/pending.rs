use std::fmt;

use serde::de::DeserializeOwned;

use crate::{
    approval::{Decision, PendingCall, PendingKind, Reason, Verdict},
    call::{Canonical, CanonicalError, Fingerprint, Principal, Timestamp},
    tool::Tool,
};

/// A call of the tool `T` that waits for a person.
///
/// For a tool that asks no questions, [`Question`](Self::Question) has no values, and a match
/// need not mention it.
pub enum Pending<T: Tool> {
    /// The call may run only if it is approved.
    Approval(Approval<T>),
    /// The tool asked a question.
    Question(Question<T>),
}

/// A call that may run only if it is approved. Deciding consumes it, so that it is decided once.
#[must_use = "the call waits until it is decided"]
pub struct Approval<T: Tool> {
    /// The effective arguments: what will run.
    pub args: T::Args,
    call: PendingCall,
}

/// A question that a tool asked. Answering consumes it, so that it is answered once.
#[must_use = "the call waits until the question is answered"]
pub struct Question<T: Tool> {
    /// The effective arguments of the call.
    pub args: T::Args,
    /// What the tool wants to know.
    pub payload: T::Suspend,
    call: PendingCall,
}

/// Why a pending call has no typed form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PendingError {
    /// The call is of a tool that the agent does not have (any more).
    #[error("the agent has no tool `{tool}`; the call `{call}` can only be cancelled")]
    UnknownTool {
        /// The tool.
        tool: String,
        /// The id of the call.
        call: String,
    },
    /// What is stored does not fit the types of the tool (any more).
    #[error("the stored {part} of the call `{call}` of `{tool}` does not fit its type any more")]
    Unfit {
        /// The tool.
        tool: String,
        /// The id of the call.
        call: String,
        /// What does not fit: arguments or question.
        part: &'static str,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A question whose payload is not stored.
    #[error("the call `{call}` of `{tool}` is a question without a payload")]
    NoPayload {
        /// The tool.
        tool: String,
        /// The id of the call.
        call: String,
    },
    /// An instance died during the call, and nobody knows whether it took effect.
    #[error(
        "the call `{}` of `{}` is in doubt: find out whether it took effect and settle it", 
        _0.call, _0.tool
    )]
    InDoubt(Box<PendingCall>),
}

impl PendingError {
    /// The error for a tool that the agent does not have.
    pub fn unknown_tool(call: &PendingCall) -> Self {
        Self::UnknownTool {
            tool: call.tool.clone(),
            call: call.call.to_string(),
        }
    }
}

impl<T: Tool> Pending<T> {
    /// Types a pending call of `T`.
    ///
    /// # Errors
    ///
    /// When the call is of another tool or in doubt, or what is stored does not fit the types of
    /// `T` any more.
    pub fn from_call(call: PendingCall) -> Result<Self, PendingError> {
        // A tool of a sub-agent may have the name of one of ours and is another tool.
        if call.tool != T::NAME || call.is_delegated() {
            return Err(PendingError::unknown_tool(&call));
        }
        match call.kind {
            PendingKind::Approval => Ok(Self::Approval(Approval {
                args: stored(&call, "arguments", &call.arguments)?,
                call,
            })),
            PendingKind::Question => {
                let Some(payload) = &call.payload else {
                    return Err(PendingError::NoPayload {
                        tool: call.tool,
                        call: call.call.to_string(),
                    });
                };
                Ok(Self::Question(Question {
                    args: stored(&call, "arguments", &call.arguments)?,
                    payload: stored(&call, "question", payload)?,
                    call,
                }))
            }
            PendingKind::InDoubt => Err(PendingError::InDoubt(Box::new(call))),
        }
    }

    /// The call as the store knows it.
    pub fn call(&self) -> &PendingCall {
        match self {
            Self::Approval(approval) => &approval.call,
            Self::Question(question) => &question.call,
        }
    }
}

fn stored<V: DeserializeOwned>(
    call: &PendingCall,
    part: &'static str,
    text: &Canonical,
) -> Result<V, PendingError> {
    text.decode().map_err(|source| PendingError::Unfit {
        tool: call.tool.clone(),
        call: call.call.to_string(),
        part,
        source,
    })
}

impl<T: Tool> Approval<T> {
    /// The call as the store knows it: who asked, why, since when, which approvals there are.
    pub fn call(&self) -> &PendingCall {
        &self.call
    }

    /// What the decision will name: this call with exactly these arguments.
    pub fn fingerprint(&self) -> Fingerprint {
        self.call.fingerprint
    }

    /// Why a person is asked.
    pub fn reasons(&self) -> &[Reason] {
        &self.call.reasons
    }

    /// On whose behalf the agent acts.
    pub fn requester(&self) -> &Principal {
        &self.call.requester
    }

    /// Until when it can be decided.
    pub fn expires_at(&self) -> Timestamp {
        self.call.expires_at
    }

    /// How many more people must approve before the call may run.
    pub fn still_needed(&self) -> u32 {
        let given = u32::try_from(self.call.approvals.len()).unwrap_or(u32::MAX);
        self.call.quorum.saturating_sub(given)
    }

    /// The call may run with exactly these arguments.
    pub fn approve(self) -> Decision {
        self.call.decision(Verdict::Approve)
    }

    /// The call must not run. The model receives the reason; a blank one is none.
    pub fn decline(self, reason: impl Into<String>) -> Decision {
        let reason = Some(reason.into()).filter(|reason| !reason.trim().is_empty());
        self.call.decision(Verdict::Decline { reason })
    }

    /// The call is to run with `args` instead. They are gated and fingerprinted anew.
    ///
    /// # Errors
    ///
    /// When `args` have no canonical form, such as a float that is not finite.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an amendment is given away, as the call is"
    )]
    pub fn amend(self, args: T::Args) -> Result<Decision, CanonicalError> {
        let arguments = Canonical::of(&args)?;
        let reason = None;
        Ok(self.call.decision(Verdict::Amend { arguments, reason }))
    }

    /// The call is withdrawn.
    pub fn cancel(self) -> Decision {
        self.call.decision(Verdict::Cancel)
    }
}

impl<T: Tool> Question<T> {
    /// The call as the store knows it.
    pub fn call(&self) -> &PendingCall {
        &self.call
    }

    /// What the answer will name: this question of this call.
    pub fn fingerprint(&self) -> Fingerprint {
        self.call.fingerprint
    }

    /// On whose behalf the agent acts.
    pub fn requester(&self) -> &Principal {
        &self.call.requester
    }

    /// Until when it can be answered.
    pub fn expires_at(&self) -> Timestamp {
        self.call.expires_at
    }

    /// Answers the question.
    ///
    /// # Errors
    ///
    /// When the answer has no canonical form, such as a float that is not finite.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an answer is given away, as the call is"
    )]
    pub fn answer(self, answer: T::Resume) -> Result<Decision, CanonicalError> {
        let data = Canonical::of(&answer)?;
        Ok(self.call.decision(Verdict::Answer { data }))
    }

    /// The call is withdrawn.
    pub fn cancel(self) -> Decision {
        self.call.decision(Verdict::Cancel)
    }
}

// Derives would ask for `T: Debug`; the arguments are shown as they are stored.
impl<T: Tool> fmt::Debug for Approval<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Approval").field(&self.call).finish()
    }
}

impl<T: Tool> fmt::Debug for Question<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Question").field(&self.call).finish()
    }
}

impl<T: Tool> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approval(approval) => approval.fmt(f),
            Self::Question(question) => question.fmt(f),
        }
    }
}
