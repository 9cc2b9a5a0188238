//! What must not compile, with the errors as people read them, and what must.

#[test]
#[ignore = "builds all dependencies once more: run with `--ignored`; record errors with TRYBUILD=overwrite"]
fn mistakes_are_reported_once_where_they_are_with_help() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("macros/fail/*.rs");
    cases.pass("macros/pass/*.rs");
}
