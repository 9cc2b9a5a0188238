//! The UI message stream of the AI SDK, as its chat speaks it: a view of runs on a thread.
//!
//! A chat is a thread, a message of the user starts a run on it, and the answer is one message
//! whose id is the run's. A call that waits for approval is a `tool-approval-request`, whose
//! `approvalId` is the fingerprint, so that the client names what its user saw; one that asks a
//! question is a tool whose output the client gives. Either answer is a request to decide by the
//! authenticated caller, whom the policy lets do so or not: what was refused is told in a
//! `data-refused` part and put again. Of the posted history nothing else is read.

mod chunks;
mod history;
mod request;
mod routes;

pub(super) use routes::routes;
