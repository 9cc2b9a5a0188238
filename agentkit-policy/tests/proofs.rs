//! Invariants are proved, refuted with a test case that fails, or skipped and said so.

#![cfg(feature = "proofs")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests may")]

use std::fs;
use std::path::{Path, PathBuf};

use agentkit_policy::LoadError;
use agentkit_policy::suite::{InvariantResult, Options, Proof, Suite};

const TOOLS: &str = r#"[{"name": "pay", "input_schema": {"type": "object", "properties":
    {"cents": {"type": "integer"}, "to": {"type": "string"}}, "required": ["cents", "to"]}}]"#;

const POLICIES: &str = r#"
@id("small") permit (principal in Role::"clerk", action == Action::"pay", resource)
when { context.input.cents < 100 };
@id("large") permit (principal in Role::"clerk", action == Action::"pay with approval", resource)
when { context.approvals.count >= 2 || context.input.cents < 1000 };
@id("finance") permit (principal in Role::"finance", action == Action::"approve pay", resource);
@id("cap") forbid (principal, action == Action::"pay", resource)
when { context.input.cents * 2 > 150 };
"#;

const CASE: &str = "cases:\n  - {name: s, user: c, call: pay, args: {cents: 1, to: a}, expect: allow, by: small}\n";

struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("proofs_{name}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("tools.json"), TOOLS).unwrap();
        fs::write(folder.join("pay.cedar"), POLICIES).unwrap();
        Self(folder)
    }

    fn suite(&self, users: &str, rest: &str) -> Result<Suite, LoadError> {
        let head = "tools: tools.json\npolicies: pay.cedar\nnow: 2026-03-01T12:00:00Z\n";
        let path = self.0.join("pay.yaml");
        fs::write(&path, format!("{head}{users}{rest}")).unwrap();
        Suite::read(&path)
    }

    fn prove(&self, invariant: &str) -> Result<InvariantResult, LoadError> {
        let rest = format!("{CASE}invariants:\n  - {{name: claim, call: pay, {invariant}}}\n");
        let suite = self.suite("users: {c: clerk}\n", &rest)?;
        let report = suite.run(&Options::default().prove())?;
        let results = report.invariants.clone().unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(report.refuted(), results.iter().any(InvariantResult::amiss));
        Ok(results.into_iter().next().unwrap())
    }
}

/// The proof, unless there is no solver.
fn proof(files: &Files, invariant: &str) -> Option<Proof> {
    match files.prove(invariant).unwrap().proof {
        Proof::Skipped { why } => {
            assert!(why.contains("cvc5"), "{why}");
            println!("skipped: {why}");
            None
        }
        proof => Some(proof),
    }
}

#[test]
fn what_holds_for_every_call_is_proved() {
    let files = Files::new("proved");
    for invariant in [
        "question: unattended, never: context.input.cents >= 100",
        "question: unattended, never: '!(principal in Role::\"clerk\")'",
        "question: approved, never: context.input.cents >= 1000 && context.approvals.count < 2",
        "question: approve, always: principal in Role::\"finance\"",
        // The engine never asks with no approvals at all.
        "question: approved, never: context.approvals.count < 1",
    ] {
        if let Some(proof) = proof(&files, invariant) {
            assert_eq!(proof, Proof::Proved, "{invariant}");
        }
    }
}

#[test]
fn a_refutation_is_a_test_case_that_fails() {
    let files = Files::new("refuted");
    for invariant in [
        "question: unattended, never: context.input.cents > 50",
        "question: unattended, always: principal in Role::\"clerk\" && context.input.cents == 99",
        "question: approve, never: principal == context.requester",
        "question: approved, never: context.input.cents > 500 && context.approvals.count < 2",
    ] {
        let Some(proof) = proof(&files, invariant) else {
            return;
        };
        let Proof::Refuted { example } = proof else {
            panic!("{invariant}: {proof:?}");
        };
        println!("{example}");
        let report = if example.starts_with("users:") {
            files
                .suite("", &example)
                .unwrap()
                .run(&Options::default())
                .unwrap()
        } else {
            fs::write(files.0.join("cedar.json"), &example).unwrap();
            files
                .suite("", "cedar: cedar.json\n")
                .unwrap()
                .run(&Options::default())
                .unwrap()
        };
        assert_eq!(
            (report.cases.len(), report.failed()),
            (1, 1),
            "{example}{report}"
        );
    }
}

#[test]
fn a_forbid_that_can_fail_keeps_a_permission_from_being_proved() {
    let files = Files::new("errors");
    // Cedar skips `cap` where it overflows, and permits; the engine denies there.
    let invariant = "question: unattended, always: principal in Role::\"clerk\" && \
                     context.input.cents < -5000000000000000000";
    match proof(&files, invariant) {
        None => {}
        Some(Proof::Undecided { why }) => {
            assert!(why.contains("the forbid `cap` can fail"), "{why}");
        }
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_condition_that_does_not_fit_the_schema_is_invalid_with_and_without_a_solver() {
    let files = Files::new("invalid");
    for (invariant, says) in [
        (
            "question: unattended, never: context.input.cent > 1",
            "cent",
        ),
        (
            "question: unattended, never: context.approvals.count > 1",
            "approvals",
        ),
        (
            "question: unatended, never: 'true'",
            "did you mean `unattended`?",
        ),
        (
            "question: unattended, never: 'context.input.cents >'",
            "not an expression",
        ),
        ("question: unattended", "neither `never` nor `always`"),
    ] {
        let error = files.prove(invariant).unwrap_err().to_string();
        assert!(
            error.contains(says) && error.contains("pay.yaml:"),
            "{error}"
        );
    }
    let rest = format!(
        "{CASE}invariants:\n  - {{name: x, call: pya, question: approve, never: 'true'}}\n"
    );
    let suite = files.suite("users: {c: clerk}\n", &rest).unwrap();
    let error = suite.run(&Options::default()).unwrap_err().to_string();
    assert!(error.contains("did you mean `pay`?"), "{error}");
}

#[test]
fn the_eleven_invariants_of_the_refund_desk_hold() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/refund_policies/refund_desk.yaml"
    );
    let suite = Suite::read(Path::new(file)).unwrap();
    let report = suite.run(&Options::default().prove()).unwrap();
    println!("{report}");
    let results = report.invariants.as_ref().unwrap();
    let mut names: Vec<&str> = results.iter().map(|result| result.name.as_str()).collect();
    names.dedup();
    assert_eq!(names.len(), 11);
    let skipped = |result: &InvariantResult| matches!(result.proof, Proof::Skipped { .. });
    if results.iter().all(skipped) {
        println!("skipped: there is no solver");
        return;
    }
    for result in results {
        assert_eq!(result.proof, Proof::Proved, "{}", result.name);
    }
}
