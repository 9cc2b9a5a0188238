//! The append-only record of everything that decides or changes.
//!
//! Each event of a run holds the digest of the one before it, so that nothing can be changed,
//! removed or inserted later without breaking the chain. Content that may have to be erased
//! (arguments, results, reasons) enters by a digest keyed with the run's secret.

mod chain;
mod event;

pub use chain::{BrokenChain, ChainHead, Entry, verify};
pub use event::{Event, content_digest};
