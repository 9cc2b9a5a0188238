//! The run machine: steps, suspension, decisions, release, recovery.
//!
//! A run is rows in the store; a process that works on it holds its lease and keeps nothing that
//! the rows do not say. Working on a run is one loop (`drive`): finish the calls of the
//! current step that can be finished; if some wait for people, put the run down; otherwise ask
//! the model.

mod answer;
mod attach;
mod bind;
mod cancel;
mod context;
mod decide;
mod decide_error;
mod defaults;
mod delegate;
mod drive;
mod error;
mod event;
mod execute;
mod hooks;
mod input;
mod lease;
mod output;
#[cfg(feature = "server")]
mod permission;
mod propose;
mod question;
mod recover;
mod runtime;
mod session;
mod start;
mod stream;
mod trace;
mod worker;

pub use attach::Attached;
pub(crate) use cancel::Active;
pub use cancel::{CancelError, CancelOutcome};
pub use decide_error::DecideError;
pub use defaults::Defaults;
pub use error::{RunError, StartError};
pub use event::{Ending, FinishReason, RunEvent};
pub use hooks::{Before, Hook, HookError, HookedCall};
pub use input::{Input, RunOptions};
pub(crate) use output::OutputSchema;
pub use runtime::{Runtime, Settings};
pub use stream::{Running, Sequenced};
pub use worker::Worker;
