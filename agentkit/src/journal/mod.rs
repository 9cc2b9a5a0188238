//! The append-only record of everything that decides or changes.
//!
//! Each event of a run holds the digest of the one before it, so that nothing can be changed,
//! removed or inserted later without breaking the chain. Content that may have to be erased
//! (arguments, results, reasons) enters by a digest keyed with the run's secret.

//!
//! From time to time a Merkle root (RFC 9162) over the heads of the runs that changed is written,
//! chained to the one before it, so that no run can vanish unnoticed. The root's digest can be
//! signed and kept elsewhere.
//!
//! An export ([`ExportLine`]) is JSON Lines in `CloudEvents` envelopes; [`Verifier`] checks one
//! without the database that it came from.

mod chain;
mod event;
mod export;
mod merkle;

pub use chain::{BrokenChain, ChainHead, Entry, verify};
pub use event::{Event, content_digest};
pub use export::{
    BrokenExport, ExportLine, ExportedCall, ExportedEntry, ExportedRoot, ExportedRun, Record,
    Verified, Verifier,
};
pub use merkle::{RunHead, merkle_root};
