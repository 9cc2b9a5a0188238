//! The example policy sets: their tests reach everything and notice every change that matters, and
//! their invariants hold.

#![cfg(feature = "suite")]
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use agentkit_policy::suite::{Options, Suite};

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(file)
}

/// Full coverage, and not more mutants explained than are known.
#[track_caller]
fn nothing_goes_unnoticed(file: &str, explained: usize) {
    let suite = Suite::read(&example(file)).unwrap();
    let options = Options::default()
        .threshold(100)
        .mutants(Duration::from_mins(10));
    let report = suite.run(&options).unwrap();
    println!("{report}");
    assert!(report.passed(), "{report}");
    let mutation = report.mutation.as_ref().unwrap();
    assert!(mutation.killed > 100, "{report}");
    assert_eq!(mutation.explained.len(), explained, "{report}");
}

#[test]
fn no_change_of_the_refund_desk_goes_unnoticed() {
    nothing_goes_unnoticed("refund_policies/refund_desk.yaml", 2);
}

#[test]
fn no_change_of_the_fourteen_rules_goes_unnoticed() {
    nothing_goes_unnoticed("fourteen_rules/fourteen_rules.yaml", 0);
}
