//! The refund desk's tests reach everything, and notice every change of its policies that matters.

#![cfg(feature = "suite")]
#![allow(clippy::unwrap_used, missing_docs, reason = "tests may")]

use std::path::Path;
use std::time::Duration;

use agentkit_policy::suite::{Options, Suite};

#[test]
fn no_change_of_the_refund_desk_goes_unnoticed() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/refund_desk/refund_desk.yaml"
    );
    let suite = Suite::read(Path::new(file)).unwrap();
    let options = Options::default()
        .threshold(100)
        .mutants(Duration::from_mins(10));
    let report = suite.run(&options).unwrap();
    assert!(report.passed(), "{report}");
    let mutation = report.mutation.as_ref().unwrap();
    assert!(
        mutation.killed > 100 && mutation.explained.len() <= 2,
        "{report}"
    );
    println!("{report}");
}
