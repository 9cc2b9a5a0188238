//! Runs one case and says where the policies differ from what is expected.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;

use crate::decision::{EvaluationError, PolicyRef, Verdict};
use crate::set::PolicySet;

use super::case::{By, Case};

/// One expectation that was not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What was asked, such as `expect` or `may_approve: fiona`.
    pub about: String,
    /// What the case expects.
    pub expected: String,
    /// What the policies answer.
    pub found: String,
}

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    /// Name of the case.
    pub name: String,
    /// The file that holds it.
    pub file: String,
    /// Its line, counted from 1; 0 where the file is not read line by line.
    pub line: u32,
    /// The expectations that were not met; none for a case that passed.
    pub failures: Vec<Failure>,
    /// Why the policies answer as they do; only for a case that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl CaseResult {
    /// True if every expectation was met.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Runs a case of a file.
pub(crate) fn run(set: &PolicySet, case: &Case, file: &str) -> CaseResult {
    let failures = failures(set, case);
    CaseResult {
        name: case.name.clone(),
        file: file.to_owned(),
        line: case.at.line,
        why: (!failures.is_empty()).then(|| set.explain(&case.call()).to_string()),
        failures,
    }
}

/// The expectations of a case that a set of policies does not meet.
pub(crate) fn failures(set: &PolicySet, case: &Case) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut errors: Vec<EvaluationError> = Vec::new();
    let call = case.call();
    if let Some((outcome, by)) = &case.outcome {
        let decision = set.decide(&call);
        compare(
            "expect",
            (
                *outcome == decision.outcome,
                outcome.to_string(),
                decision.outcome.to_string(),
            ),
            by,
            &decision.determining,
            &mut failures,
        );
        note(&mut errors, decision.errors);
    }
    for approver in &case.approvers {
        let permission = set.may_approve(&call, &approver.user, &case.approvals);
        let shown = |may: bool| {
            if may {
                "may approve"
            } else {
                "may not approve"
            }
        };
        let field = if approver.may {
            "may_approve"
        } else {
            "may_not_approve"
        };
        compare(
            &format!("{field}: {}", approver.user.id),
            (
                approver.may == permission.permitted,
                shown(approver.may).to_owned(),
                format!("{} ({})", shown(permission.permitted), permission.why),
            ),
            &approver.by,
            &permission.determining,
            &mut failures,
        );
        note(&mut errors, permission.errors);
    }
    if let Some((verdict, by)) = &case.release {
        let release = set.release(&call, &case.approvals);
        let mut found = verdict_text(release.verdict);
        for refused in &release.refused {
            let _ = write!(
                found,
                "; the vote of `{}` does not count: {}",
                refused.approver, refused.why
            );
        }
        compare(
            "release",
            (*verdict == release.verdict, verdict_text(*verdict), found),
            by,
            &release.determining,
            &mut failures,
        );
        note(&mut errors, release.errors);
    }
    compare_errors(case, &errors, &mut failures);
    failures
}

fn verdict_text(verdict: Verdict) -> String {
    match verdict {
        Verdict::Run => "run".to_owned(),
        Verdict::Wait { quorum } => format!("wait for {quorum}"),
        Verdict::Deny => "deny".to_owned(),
    }
}

fn compare(
    about: &str,
    (same, expected, found): (bool, String, String),
    by: &By,
    determining: &[PolicyRef],
    failures: &mut Vec<Failure>,
) {
    let actual: BTreeSet<String> = determining.iter().map(|policy| policy.id.clone()).collect();
    let same_policies = match by {
        By::Any => true,
        By::Exactly(ids) => *ids == actual,
    };
    if same && same_policies {
        return;
    }
    failures.push(Failure {
        about: about.to_owned(),
        expected: match by {
            By::Any => expected,
            By::Exactly(_) => format!("{expected}, by {by}"),
        },
        found: format!("{found}, by {}", By::Exactly(actual)),
    });
}

fn note(errors: &mut Vec<EvaluationError>, more: Vec<EvaluationError>) {
    for error in more {
        let same = |known: &EvaluationError| {
            known.policy == error.policy && known.message == error.message
        };
        // The same policy fails alike for each question.
        if !errors.iter().any(same) {
            errors.push(error);
        }
    }
}

/// Every error is expected by one text, and every expected text is found in one error.
fn compare_errors(case: &Case, errors: &[EvaluationError], failures: &mut Vec<Failure>) {
    let mut left: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let mut missing = Vec::new();
    for expected in &case.errors {
        match left
            .iter()
            .position(|error| error.contains(expected.as_str()))
        {
            Some(at) => {
                left.remove(at);
            }
            None => missing.push(format!("an error that holds `{expected}`")),
        }
    }
    if left.is_empty() && missing.is_empty() {
        return;
    }
    let or = |list: Vec<String>, none: &str| {
        if list.is_empty() {
            none.to_owned()
        } else {
            list.join("; ")
        }
    };
    failures.push(Failure {
        about: "errors".to_owned(),
        expected: or(missing, "no other evaluation error"),
        found: or(left, "no such error"),
    });
}
