//! Runs, calls, decisions and the journal in a database: the only room that knows SQL.
//!
//! Every change of a call is one conditional update on its id, state and version, in one
//! transaction with its journal event and its side rows. Time is the database's.
//!
#![doc = include_str!("beyond_one_machine.md")]

mod attempt;
mod audit;
mod backend;
mod call;
mod connect;
mod entity;
mod erase;
mod error;
mod events;
mod group;
mod handle;
mod inbox;
mod labels;
mod migration;
mod past;
mod record;
mod rows;
mod run;
#[cfg(feature = "server")]
mod sight;
#[cfg(feature = "otel")]
mod suspension;
mod sweep;
mod threads;
mod transaction;
mod tree;

pub(crate) use call::{Ask, Binding, CallChange, Facts, NewCall, NewDecision, StoredDecision};
pub use connect::{Store, StoreOptions};
pub use error::StoreError;
pub(crate) use events::StoredEvent;
pub use inbox::{Page, RunFilter, RunSummary};
pub(crate) use past::{CallsLook, Look, Past, PastCall, before, session_of};
pub use record::{
    ApprovedOccasion, CallRecord, GateRecord, Lease, ParentCall, RunRecord, RunStatus,
    StoredMessage,
};
pub(crate) use run::{NewRun, RunEnd, Usage};
#[cfg(feature = "server")]
pub(crate) use sight::{CallInSight, WaitingFilter, Watermark};
pub(crate) use threads::{Part, ThreadPlace};
