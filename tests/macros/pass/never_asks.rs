//! A tool that asks nothing needs no arm for questions, also in another crate.
#![deny(warnings, missing_docs, unused, clippy::pedantic, clippy::nursery)]
#![forbid(unsafe_code)]

use agentkit::{agent::Pending, approval::Decision, tool};

/// Asks nothing.
#[tool(require_approval)]
pub fn refund(cents: u64) -> u64 {
    cents
}

/// Decides.
pub fn decide(pending: Pending<refund>) -> Decision {
    match pending {
        Pending::Approval(approval) if approval.args.cents > 100 => approval.decline("too much"),
        Pending::Approval(approval) => approval.approve(),
    }
}

fn main() {}
