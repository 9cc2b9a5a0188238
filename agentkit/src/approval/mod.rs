//! What waits for a person, and what the person decides.
//!
//! A [`PendingCall`] is what an approver is shown; a [`Decision`] names the run, the call and the
//! [`Fingerprint`](crate::call::Fingerprint) that the approver saw, so that it can never count
//! for anything else.

pub(crate) mod canonical;
mod decision;
mod directory;
mod request;

pub use decision::{Decided, Decision, DecisionKind, RecordedDecision, Settlement, Verdict};
pub use directory::{ClaimsOnly, Directory, DirectoryError, Standing};
pub use request::{PendingCall, PendingKind, Reason, Vote};
