use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Where a tool call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The model asked for it; nothing has been decided.
    Proposed,
    /// Final: the gate refused it, or its arguments could not be decoded.
    Denied,
    /// Final: a hook answered in its place.
    Blocked,
    /// It may run, and nobody has started it.
    Ready,
    /// It waits for people.
    AwaitingApproval,
    /// Enough people approved; the approval is not used up yet.
    Approved,
    /// Final: a person refused it.
    Declined,
    /// Final: nobody decided in time.
    Expired,
    /// Final: what it was based on is gone (its tool, or the tool's schema).
    Superseded,
    /// Final: the run, or the call, was cancelled before it ran.
    Cancelled,
    /// It was started; its effect may have happened.
    Executing,
    /// It was handed to a sub-agent, whose own run goes on.
    Delegated,
    /// Final: it returned a result.
    Succeeded,
    /// Final: it returned an error.
    Failed,
    /// It asked a question and waits for the answer.
    AwaitingInput,
    /// Its instance died while it was executing: whether the effect happened is not known.
    InDoubt,
}

impl CallState {
    /// All states.
    pub const ALL: [Self; 16] = [
        Self::Proposed,
        Self::Denied,
        Self::Blocked,
        Self::Ready,
        Self::AwaitingApproval,
        Self::Approved,
        Self::Declined,
        Self::Expired,
        Self::Superseded,
        Self::Cancelled,
        Self::Executing,
        Self::Delegated,
        Self::Succeeded,
        Self::Failed,
        Self::AwaitingInput,
        Self::InDoubt,
    ];

    /// The name under which the state is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Denied => "denied",
            Self::Blocked => "blocked",
            Self::Ready => "ready",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Approved => "approved",
            Self::Declined => "declined",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
            Self::Executing => "executing",
            Self::Delegated => "delegated",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::AwaitingInput => "awaiting_input",
            Self::InDoubt => "in_doubt",
        }
    }

    /// Whether the call has its outcome and nothing will change it.
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Denied
                | Self::Blocked
                | Self::Declined
                | Self::Expired
                | Self::Superseded
                | Self::Cancelled
                | Self::Succeeded
                | Self::Failed
        )
    }

    /// Whether only a person can move the call on.
    pub const fn needs_person(self) -> bool {
        matches!(
            self,
            Self::AwaitingApproval | Self::AwaitingInput | Self::InDoubt
        )
    }

    /// The state after `event`.
    ///
    /// # Errors
    ///
    /// When `event` cannot happen to a call in this state; nothing changes then.
    #[allow(clippy::match_same_arms, reason = "one arm a rule")]
    pub const fn after(self, event: CallEvent) -> Result<Self, IllegalTransition> {
        use CallEvent as E;
        let next = match (self, event) {
            (Self::Proposed | Self::Ready | Self::Approved, E::Deny) => Self::Denied,
            (Self::Proposed, E::Block) => Self::Blocked,
            (Self::Proposed, E::Allow) => Self::Ready,
            // Repeated after a decline in the same run.
            (Self::Proposed | Self::AwaitingApproval, E::Decline) => Self::Declined,
            // Put before people, or put before them again under new facts: a new nonce, and no
            // earlier vote counts.
            (Self::Proposed | Self::Ready | Self::Approved | Self::AwaitingApproval, E::Ask)
            | (Self::AwaitingApproval, E::Vote) => Self::AwaitingApproval,
            (Self::AwaitingApproval, E::Approve) => Self::Approved,
            // An amendment that the policy lets run on its own.
            (Self::AwaitingApproval, E::Amend) => Self::Ready,
            (Self::AwaitingApproval | Self::AwaitingInput | Self::Approved, E::Expire) => {
                Self::Expired
            }
            (
                Self::AwaitingApproval | Self::AwaitingInput | Self::Approved | Self::Ready,
                E::Supersede,
            ) => Self::Superseded,
            (
                Self::AwaitingApproval
                | Self::AwaitingInput
                | Self::Approved
                | Self::Ready
                | Self::Delegated,
                E::Cancel,
            ) => Self::Cancelled,
            (Self::Approved | Self::Ready, E::Start) => Self::Executing,
            (Self::Approved | Self::Ready, E::Delegate) => Self::Delegated,
            (Self::Executing | Self::InDoubt | Self::Delegated, E::Succeed) => Self::Succeeded,
            (Self::Executing | Self::InDoubt | Self::Delegated, E::Fail) => Self::Failed,
            (Self::Executing, E::Suspend) => Self::AwaitingInput,
            (Self::Executing, E::LoseHolder) => Self::InDoubt,
            (Self::AwaitingInput, E::Answer) => Self::Ready,
            // A person, or the tool's declaration that it is idempotent, allows another start.
            (Self::InDoubt, E::Retry) => Self::Ready,
            _ => return Err(IllegalTransition { state: self, event }),
        };
        Ok(next)
    }
}

impl fmt::Display for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a state of a call")]
pub struct UnknownState {
    text: String,
}

impl FromStr for CallState {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| UnknownState {
                text: text.chars().take(64).collect(),
            })
    }
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallEvent {
    /// The gate refuses it, now or at release.
    Deny,
    /// A hook answers in its place.
    Block,
    /// The gate lets it run.
    Allow,
    /// It is put before people, for the first time or again under new facts.
    Ask,
    /// A person approves, and more are needed.
    Vote,
    /// A person approves, and it is enough.
    Approve,
    /// A person declines, or the same action was declined before.
    Decline,
    /// A person amends it, and it may run as amended without an approval.
    Amend,
    /// Its time is over.
    Expire,
    /// Its tool is gone or has another schema.
    Supersede,
    /// It, or its run, is cancelled.
    Cancel,
    /// An instance uses up the approval and starts it.
    Start,
    /// It is handed to a sub-agent: the approval is used up, and the sub-agent's own calls pass
    /// their own gate.
    Delegate,
    /// The tool returned a result, or a person says that it took effect.
    Succeed,
    /// The tool returned an error, or a person says that it did not take effect.
    Fail,
    /// The tool asks a question.
    Suspend,
    /// The instance that executed it is gone.
    LoseHolder,
    /// A person answers the question.
    Answer,
    /// It may be started once more after doubt.
    Retry,
}

impl CallEvent {
    /// All events.
    pub const ALL: [Self; 19] = [
        Self::Deny,
        Self::Block,
        Self::Allow,
        Self::Ask,
        Self::Vote,
        Self::Approve,
        Self::Decline,
        Self::Amend,
        Self::Expire,
        Self::Supersede,
        Self::Cancel,
        Self::Start,
        Self::Delegate,
        Self::Succeed,
        Self::Fail,
        Self::Suspend,
        Self::LoseHolder,
        Self::Answer,
        Self::Retry,
    ];
}

/// An event that cannot happen to a call in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a call that is `{state}` cannot take `{event:?}`")]
pub struct IllegalTransition {
    state: CallState,
    event: CallEvent,
}

impl IllegalTransition {
    /// The state in which the call was and still is.
    pub const fn state(&self) -> CallState {
        self.state
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use proptest::prelude::*;

    use super::*;

    fn any_event() -> impl Strategy<Value = CallEvent> {
        proptest::sample::select(CallEvent::ALL.as_slice())
    }

    #[test]
    fn names_round_trip() {
        for state in CallState::ALL {
            assert_eq!(state.as_str().parse::<CallState>().unwrap(), state);
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert!("Ready".parse::<CallState>().is_err());
    }

    #[test]
    fn nothing_leaves_a_final_state() {
        for state in CallState::ALL.into_iter().filter(|state| state.is_final()) {
            for event in CallEvent::ALL {
                assert!(state.after(event).is_err(), "{state} {event:?}");
            }
        }
    }

    #[test]
    fn every_state_that_is_not_final_can_reach_an_end() {
        for state in CallState::ALL {
            let mut reached = vec![state];
            while let Some(next) = CallEvent::ALL
                .into_iter()
                .flat_map(|event| {
                    reached
                        .iter()
                        .filter_map(move |from| from.after(event).ok())
                })
                .find(|next| !reached.contains(next))
            {
                reached.push(next);
            }
            assert!(reached.iter().any(|state| state.is_final()), "{state}");
        }
    }

    proptest! {
        /// Whatever happens, a call starts at most once for each permission to start: an allow,
        /// an approval, an amendment that needs none, an answer, or a retry after doubt.
        #[test]
        fn a_call_starts_at_most_once_for_each_permission(events in prop::collection::vec(any_event(), 0..60)) {
            let (mut state, mut permissions, mut starts) = (CallState::Proposed, 0, 0);
            for event in events {
                let Ok(next) = state.after(event) else { continue };
                match event {
                    CallEvent::Allow | CallEvent::Approve | CallEvent::Amend
                    | CallEvent::Answer | CallEvent::Retry => permissions += 1,
                    CallEvent::Start | CallEvent::Delegate => starts += 1,
                    _ => {}
                }
                state = next;
                prop_assert!(starts <= permissions);
            }
        }

        /// Without a person nothing leaves `awaiting_approval` towards an execution.
        #[test]
        fn nothing_runs_past_a_pending_approval_without_a_person(events in prop::collection::vec(any_event(), 0..60)) {
            let mut state = CallState::AwaitingApproval;
            for event in events {
                if matches!(event, CallEvent::Approve | CallEvent::Amend) { continue }
                if let Ok(next) = state.after(event) { state = next; }
                prop_assert!(!matches!(state, CallState::Executing | CallState::Delegated | CallState::Ready | CallState::Succeeded));
            }
        }
    }
}
