//! The example policy sets: their tests reach everything and notice every change that matters, and
//! their invariants hold.

#![cfg(feature = "suite")]
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use agentkit_policy::suite::{Options, Suite};

fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    folder.join(name).join(format!("{name}.yaml"))
}

/// Full coverage, and not more mutants explained than are known.
#[track_caller]
fn nothing_goes_unnoticed(name: &str, explained: usize) {
    let suite = Suite::read(&example(name)).unwrap();
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
    nothing_goes_unnoticed("refund_desk", 2);
}

#[test]
fn no_change_of_the_fourteen_rules_goes_unnoticed() {
    nothing_goes_unnoticed("fourteen_rules", 0);
}
