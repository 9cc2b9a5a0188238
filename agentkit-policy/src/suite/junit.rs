//! Reports in `JUnit`'s XML, which every CI system reads.

use quick_junit::{NonSuccessKind, Report as JunitReport, TestCase, TestCaseStatus, TestSuite};

use super::invariant::{InvariantResult, Proof};
use super::report::Report;

impl Report {
    /// Several reports as one `JUnit` document: a suite for each file, a test for each case, and one
    /// more each for coverage and mutants where they were demanded.
    ///
    /// # Errors
    ///
    /// If the document cannot be written.
    pub fn junit(reports: &[Self]) -> Result<String, String> {
        let mut document = JunitReport::new("agentkit policy test");
        for report in reports {
            let mut suite = TestSuite::new(report.file.as_str());
            for case in &report.cases {
                let text = case.to_string();
                add(&mut suite, &case.name, case.passed(), &text);
            }
            if report.cases.is_empty() {
                add(&mut suite, "cases", false, "there are no cases");
            }
            if let Some(threshold) = report.threshold {
                let coverage = &report.coverage;
                let missing: Vec<&str> =
                    [&coverage.policies, &coverage.clauses, &coverage.questions]
                        .into_iter()
                        .flat_map(|figure| figure.uncovered.iter().map(String::as_str))
                        .collect();
                let enough = coverage.least() >= threshold;
                let text = format!(
                    "coverage is {} %, {threshold} % are demanded\n{}",
                    coverage.least(),
                    missing.join("\n")
                );
                add(&mut suite, "coverage", enough, &text);
            }
            if let Some(mutation) = &report.mutation {
                add(
                    &mut suite,
                    "mutants",
                    mutation.passed(),
                    &mutation.to_string(),
                );
            }
            for result in report.invariants.iter().flatten() {
                invariant(&mut suite, result);
            }
            document.add_test_suite(suite);
        }
        document.to_string().map_err(|error| error.to_string())
    }
}

fn invariant(suite: &mut TestSuite, result: &InvariantResult) {
    let name = format!("invariant: {} ({})", result.name, result.tool);
    match &result.proof {
        Proof::Proved => add(suite, &name, true, ""),
        Proof::Refuted { example } => add(suite, &name, false, example),
        Proof::Undecided { why } => add(suite, &name, false, why),
        Proof::Skipped { why } => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(why.as_str());
            suite.add_test_case(TestCase::new(name, status));
        }
    }
}

fn add(suite: &mut TestSuite, name: &str, passed: bool, text: &str) {
    let status = if passed {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(text.lines().next().unwrap_or_default());
        status.set_description(text);
        status
    };
    suite.add_test_case(TestCase::new(name, status));
}
