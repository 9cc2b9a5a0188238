//! What running a suite brought to light, as data and as text.

use std::fmt;

use serde::Serialize;

use super::coverage::{Coverage, Figure};
use super::invariant::{InvariantResult, Proof};
use super::judge::CaseResult;
use super::mutate::{Mutation, Survivor};

/// The result of running one test file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The test file.
    pub file: String,
    /// Every case, in the order of the file.
    pub cases: Vec<CaseResult>,
    /// What the cases reach.
    pub coverage: Coverage,
    /// The percentage that was demanded of each figure of coverage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// Whether the text lists what is not covered although no threshold is missed.
    #[serde(skip)]
    pub list_uncovered: bool,
    /// How the cases did against changed policies; none where it was not asked, or a case failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,
    /// What became of the invariants, for each tool; none where it was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invariants: Option<Vec<InvariantResult>>,
}

impl Report {
    /// True if there are cases and all of them passed.
    pub fn cases_passed(&self) -> bool {
        !self.cases.is_empty() && self.cases.iter().all(CaseResult::passed)
    }

    /// True if the cases reach what was demanded: coverage, and every mutant noticed or explained.
    pub fn adequate(&self) -> bool {
        self.threshold
            .is_none_or(|threshold| self.coverage.least() >= threshold)
            && self.mutation.as_ref().is_none_or(Mutation::passed)
    }

    /// True if an invariant is refuted, or could not be decided although there is a solver.
    pub fn refuted(&self) -> bool {
        self.invariants.iter().flatten().any(InvariantResult::amiss)
    }

    /// True if nothing is amiss. Invariants that were skipped are not amiss, and are not proved.
    pub fn passed(&self) -> bool {
        self.cases_passed() && self.adequate() && !self.refuted()
    }

    /// Number of cases that failed.
    pub fn failed(&self) -> usize {
        self.cases.iter().filter(|case| !case.passed()).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in self.cases.iter().filter(|case| !case.passed()) {
            write!(f, "{case}")?;
        }
        if self.cases.is_empty() {
            writeln!(
                f,
                "{}: there are no cases, so nothing was tested; add some under `cases`",
                self.file
            )?;
        }
        writeln!(
            f,
            "{}: {} cases, {} failed",
            self.file,
            self.cases.len(),
            self.failed()
        )?;
        let listed = self.list_uncovered
            || self
                .threshold
                .is_some_and(|threshold| self.coverage.least() < threshold);
        for (name, figure) in [
            ("policies", &self.coverage.policies),
            ("clauses", &self.coverage.clauses),
            ("questions", &self.coverage.questions),
        ] {
            write_figure(f, name, figure, listed)?;
        }
        if let Some(threshold) = self.threshold.filter(|t| self.coverage.least() < *t) {
            writeln!(
                f,
                "  coverage is below {threshold} %: add cases for what is listed"
            )?;
        }
        if let Some(mutation) = &self.mutation {
            write!(f, "{mutation}")?;
        }
        match &self.invariants {
            Some(invariants) => write_invariants(f, invariants),
            None => Ok(()),
        }
    }
}

fn write_invariants(f: &mut fmt::Formatter<'_>, all: &[InvariantResult]) -> fmt::Result {
    let number = |of: fn(&Proof) -> bool| all.iter().filter(|result| of(&result.proof)).count();
    writeln!(
        f,
        "  invariants: {} proved, {} refuted, {} undecided, {} skipped",
        number(|proof| matches!(proof, Proof::Proved)),
        number(|proof| matches!(proof, Proof::Refuted { .. })),
        number(|proof| matches!(proof, Proof::Undecided { .. })),
        number(|proof| matches!(proof, Proof::Skipped { .. })),
    )?;
    for result in all {
        let (what, why, example) = match &result.proof {
            Proof::Proved => continue,
            Proof::Refuted { example } => ("REFUTED", "a test case that fails:", example.as_str()),
            Proof::Skipped { why } => ("skipped", why.as_str(), ""),
            Proof::Undecided { why } => ("UNDECIDED", why.as_str(), ""),
        };
        let InvariantResult {
            name,
            file,
            line,
            tool,
            ..
        } = result;
        writeln!(
            f,
            "    {file}:{line}: {what}: {name} (tool `{tool}`): {why}"
        )?;
        for line in example.lines() {
            writeln!(f, "      {line}")?;
        }
    }
    Ok(())
}

fn write_figure(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    figure: &Figure,
    listed: bool,
) -> fmt::Result {
    writeln!(
        f,
        "  coverage of {name}: {} % ({} of {})",
        figure.percent, figure.covered, figure.total
    )?;
    for missing in figure.uncovered.iter().filter(|_| listed) {
        writeln!(f, "    {missing}")?;
    }
    Ok(())
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}", self.file, self.line)?;
        } else {
            f.write_str(&self.file)?;
        }
        if self.passed() {
            return writeln!(f, ": passed: {}", self.name);
        }
        writeln!(f, ": FAILED: {}", self.name)?;
        for failure in &self.failures {
            writeln!(f, "  {}", failure.about)?;
            writeln!(f, "    expected: {}", failure.expected)?;
            writeln!(f, "    found:    {}", failure.found)?;
        }
        for line in self.why.iter().flat_map(|why| why.lines()) {
            writeln!(f, "  | {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  mutants: {} noticed, {} survive, {} survive as explained, {} do not load",
            self.killed,
            self.survivors.len(),
            self.explained.len(),
            self.refused
        )?;
        for survivor in &self.survivors {
            write!(f, "{survivor}")?;
        }
        if !self.survivors.is_empty() {
            writeln!(
                f,
                "    add a case for each that fails after the change; where there can be none, put \
                 the entry under `equivalent` with the reason"
            )?;
        }
        for stale in &self.stale {
            writeln!(f, "    {stale}")?;
        }
        if self.untried > 0 {
            writeln!(
                f,
                "    {} mutants were not tried for want of time: allow more seconds",
                self.untried
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "    {}:{}: no case notices:", self.file, self.line)?;
        writeln!(f, "      - policy: {}", yaml_text(&self.policy))?;
        writeln!(f, "        change: {}", yaml_text(&self.change))?;
        writeln!(f, "        reason:")
    }
}

/// A text as YAML reads it back: JSON's texts are texts of YAML too.
pub(crate) fn yaml_text(text: &str) -> String {
    if !text.contains('\'') && !text.contains(['\n', '\r', '\t', '\0']) {
        return format!("'{text}'");
    }
    serde_json::Value::String(text.to_owned()).to_string()
}
