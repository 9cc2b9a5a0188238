use crate::{
    approval::{DecisionKind, PendingKind, RecordedDecision},
    call::{CallId, CallState, Fingerprint, RunId, Timestamp},
    store::StoreError,
    tool::ArgumentError,
};

/// Why a decision is refused. Nothing was changed and nothing consumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// There is no such call in that run, or not for this agent.
    #[error(
        "there is no call `{call}` in run `{run}`; list what is pending to see what can be decided"
    )]
    UnknownCall {
        /// The run that was named.
        run: RunId,
        /// The call that was named.
        call: CallId,
    },
    /// The call was decided otherwise before.
    #[error(
        "the call `{call}` is {state}: `{}` decided `{}` at {}",
        .recorded.approver, .recorded.kind, .recorded.at
    )]
    AlreadyDecided {
        /// The call.
        call: CallId,
        /// Its state.
        state: CallState,
        /// The decision that stands.
        recorded: Box<RecordedDecision>,
    },
    /// The call does not wait for a person.
    #[error("the call `{call}` is {state} and does not wait for a decision")]
    NotPending {
        /// The call.
        call: CallId,
        /// Its state.
        state: CallState,
    },
    /// The decision was made about something else than what waits now.
    #[error(
        "the decision names the fingerprint {given}, but what waits is {current}; look at the call again and decide anew"
    )]
    FingerprintMismatch {
        /// The fingerprint in the decision.
        given: Fingerprint,
        /// The fingerprint of what waits.
        current: Fingerprint,
    },
    /// The stored call does not fit its own fingerprint: someone changed the database.
    #[error(
        "the stored call `{call}` does not match its fingerprint {fingerprint}: the row was changed after the approval was requested; it will not run. Decline it and find out who wrote to the database"
    )]
    Tampered {
        /// The call.
        call: CallId,
        /// The fingerprint that was recorded when the approval was requested.
        fingerprint: Fingerprint,
    },
    /// The time to decide is over.
    #[error("the call `{call}` expired at {at}; it will not run. Start the request again")]
    Expired {
        /// The call.
        call: CallId,
        /// When.
        at: Timestamp,
    },
    /// The policy does not let this person decide.
    #[error("`{approver}` may not decide about `{tool}`: {why}")]
    NotAllowed {
        /// Who tried.
        approver: String,
        /// The tool.
        tool: String,
        /// What the policy says.
        why: String,
    },
    /// An approval was sent to a question, or the other way round.
    #[error("`{given}` does not answer what waits, which is {}", describe(*.waiting))]
    WrongKind {
        /// What was sent.
        given: DecisionKind,
        /// What waits.
        waiting: PendingKind,
    },
    /// The answer or the amendment does not fit the tool's type. The call still waits.
    #[error("the decision does not fit the tool's schema")]
    DoesNotFit(#[source] ArgumentError),
    /// The tool is not there any more.
    #[error("the agent has no tool `{tool}` any more; the call cannot be decided")]
    UnknownTool {
        /// The tool.
        tool: String,
    },
    /// The store failed: nothing was changed, or it can be read what was.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

const fn describe(kind: PendingKind) -> &'static str {
    match kind {
        PendingKind::Approval => "an approval: approve, decline or amend it",
        PendingKind::Question => "a question: answer it",
        PendingKind::InDoubt => "a call in doubt: settle it",
    }
}

impl DecideError {
    /// The HTTP status that tells a client the same.
    pub const fn http_status(&self) -> u16 {
        match self {
            Self::NotAllowed { .. } => 403,
            Self::UnknownCall { .. } => 404,
            Self::AlreadyDecided { .. }
            | Self::NotPending { .. }
            | Self::FingerprintMismatch { .. }
            | Self::Tampered { .. }
            | Self::WrongKind { .. }
            | Self::UnknownTool { .. } => 409,
            Self::Expired { .. } => 410,
            Self::DoesNotFit(_) => 422,
            Self::Store(_) => 503,
        }
    }
}
