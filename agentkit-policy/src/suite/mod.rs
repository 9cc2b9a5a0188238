//! Tests of policies in YAML files: cases, coverage, mutation, proofs.
//!
//! ```yaml
//! tools: tools.json
//! policies: refunds.cedar
//! now: 2026-03-01T12:00:00Z
//! users:
//!   clara: clerk
//!   fiona: finance
//! cases:
//!   - name: a refund by its amount
//!     user: clara
//!     call: issue_refund
//!     args: {order_id: o-1, country: DE}
//!     columns: [args.amount_cents, expect, by]
//!     rows:
//!       - [4999, allow, small-refunds-run-alone]
//!       - [5000, 1 approval, larger-refunds-need-one-approval]
//!   - name: nobody approves their own
//!     user: clara
//!     call: issue_refund
//!     args: {order_id: o-1, country: DE, amount_cents: 5000}
//!     may_approve: [fiona]
//!     may_not_approve: {clara: nobody-approves-their-own}
//! ```
//!
//! An expectation is exact: the outcome, the quorum, the determining policies (`by: any` leaves
//! them open), and no evaluation error but those in `errors`. An unknown field is an error, a file
//! without cases is a failure, and every case runs.
//!
//! | field of a case | meaning |
//! |---|---|
//! | `user`, `call`, `args` | on whose behalf which tool is called with what |
//! | `now`, `agent`, `run`, `step` | where they differ from the file's |
//! | `expect`, `by` | `allow`, `2 approvals` or `deny`, and the policies that bring it about |
//! | `may_approve`, `may_not_approve` | people, or a map from people to policies |
//! | `approved_by`, `requested_at`, `demanded` | the approvals that the call has; `25h ago` |
//! | `release`, `release_by` | `run`, `wait for 2` or `deny` just before execution |
//! | `session`, `derived`, `entities`, `app` | the past, where it differs from a fresh session; what the tool derives; what the application adds |
//! | `errors` | a text for each evaluation error that is expected |
//! | `columns`, `rows` | a table: a case for each row; `args.amount` names a part of a field |
//!
//! `settings` declares `user_attributes`, `max_quorum`, `max_approval_age`, `facts` and `extension`; `cedar` names files
//! of Cedar's own `run-tests`; `equivalent` explains mutants that survive; `invariants` are claims
//! about every call, proved where a solver is installed (feature `proofs`).

mod bench;
mod case;
mod coverage;
mod document;
mod expect;
mod facts;
mod invariant;
mod judge;
mod junit;
mod mutant;
mod mutate;
#[cfg(feature = "proofs")]
mod prove;
mod question;
mod read;
mod report;
mod time;
#[cfg(feature = "proofs")]
mod witness;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::declaration::{PolicySource, Settings, ToolDeclaration};
use crate::heard::Listener;
use crate::load_error::LoadError;
use crate::set::PolicySet;
use crate::slice::Schemas;

use case::{Case, Equivalent};
use invariant::Invariant;
use question::QuestionCase;
use read::about_file;

pub use coverage::{Coverage, Figure};
pub use invariant::{InvariantResult, Proof};
pub use judge::{CaseResult, Failure};
pub use mutate::{Mutation, Survivor};
pub use report::Report;

/// Greatest size of a file that is read, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// A test file with the tools and policies that it tests.
#[derive(Debug)]
pub struct Suite {
    file: String,
    tools: Vec<ToolDeclaration>,
    sources: Vec<PolicySource>,
    settings: Settings,
    cases: Vec<Case>,
    questions: Vec<QuestionCase>,
    equivalents: Vec<Equivalent>,
    invariants: Vec<Invariant>,
}

/// What is done besides running the cases.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Percentage that each of the three figures of coverage must reach.
    pub threshold: Option<u32>,
    /// Lists in the report's text what is not covered.
    pub list_uncovered: bool,
    /// Changes the policies and demands that a case notices; at most for this long.
    pub mutants: Option<Duration>,
    /// Proves the invariants.
    pub prove: bool,
}

impl Options {
    /// Demands a coverage, in per cent.
    pub fn threshold(mut self, percent: u32) -> Self {
        self.threshold = Some(percent);
        self
    }

    /// Lists what is not covered.
    pub fn list_uncovered(mut self) -> Self {
        self.list_uncovered = true;
        self
    }

    /// Demands that every change of a policy is noticed; tries for at most this long.
    pub fn mutants(mut self, at_most: Duration) -> Self {
        self.mutants = Some(at_most);
        self
    }

    /// Proves the invariants.
    pub fn prove(mut self) -> Self {
        self.prove = true;
        self
    }
}

impl Suite {
    /// Reads a test file and the files that it names, relative to its folder.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with them, each finding with file and line.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let text = read_file(path, "name a test file")?;
        let file = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new(""));
        let document = read::document(&file, &text, folder)?;
        let mut findings = Vec::new();
        let mut keep = |error: LoadError| findings.extend_from_slice(error.findings());
        let mut tools = Vec::new();
        for path in &document.tools {
            match read_tools(path) {
                Ok(more) => tools.extend(more),
                Err(error) => keep(error),
            }
        }
        let mut sources = Vec::new();
        for path in &document.policies {
            match read_policies(path) {
                Ok(more) => sources.extend(more),
                Err(error) => keep(error),
            }
        }
        let mut questions = Vec::new();
        for path in &document.cedar {
            match read_file(path, "name a file of `cedar run-tests`")
                .and_then(|text| question::read(path, &text))
            {
                Ok(more) => questions.extend(more),
                Err(error) => keep(error),
            }
        }
        if !findings.is_empty() {
            return Err(LoadError::new(findings));
        }
        Ok(Self {
            file,
            tools,
            sources,
            settings: document.settings,
            cases: document.cases,
            questions,
            equivalents: document.equivalents,
            invariants: document.invariants,
        })
    }

    /// Loads the policies that the file tests.
    ///
    /// # Errors
    ///
    /// As for [`PolicyEngine::load`](crate::PolicyEngine::load).
    pub fn load(&self) -> Result<PolicySet, LoadError> {
        PolicySet::load(
            &self.tools,
            &self.sources,
            &self.settings,
            &Schemas::default(),
        )
    }

    /// Runs every case, and what the options ask for besides.
    ///
    /// # Errors
    ///
    /// If the policies do not load.
    pub fn run(&self, options: &Options) -> Result<Report, LoadError> {
        let mut set = self.load()?;
        let findings = invariant::check(&set, &self.file, &self.invariants);
        if !findings.is_empty() {
            return Err(LoadError::new(findings));
        }
        let listener = Listener::default();
        for slice in set.slices.values_mut() {
            slice.listener = Some(listener.clone());
        }
        let cases: Vec<CaseResult> = self
            .cases
            .iter()
            .map(|case| judge::run(&set, case, &self.file))
            .chain(self.questions.iter().map(|case| question::run(&set, case)))
            .collect();
        let coverage = coverage::measure(&set, &listener.take());
        let passed = !cases.is_empty() && cases.iter().all(CaseResult::passed);
        // A suite that fails notices every change.
        let mutation = match options.mutants {
            Some(limit) if passed => Some(mutate::run(self, &set, limit)?),
            _ => None,
        };
        Ok(Report {
            file: self.file.clone(),
            cases,
            coverage,
            threshold: options.threshold,
            list_uncovered: options.list_uncovered,
            mutation,
            invariants: options.prove.then(|| self.prove(&set)),
        })
    }

    #[cfg(feature = "proofs")]
    fn prove(&self, set: &PolicySet) -> Vec<InvariantResult> {
        prove::prove(set, &self.file, &self.invariants)
    }

    /// Without the prover nothing is known, and nothing is passed.
    #[cfg(not(feature = "proofs"))]
    fn prove(&self, _: &PolicySet) -> Vec<InvariantResult> {
        let skipped = |invariant: &Invariant| InvariantResult {
            name: invariant.name.clone(),
            file: self.file.clone(),
            line: invariant.at.line,
            tool: invariant.tools.join(", "),
            proof: Proof::Skipped {
                why: "this program is built without the feature `proofs`".to_owned(),
            },
        };
        self.invariants.iter().map(skipped).collect()
    }

    /// True if some case fails where one policy is changed; cases about tools that the set does not
    /// hold have no say.
    fn notices(&self, set: &PolicySet, changed: &str) -> bool {
        let notices = |case: &Case| {
            set.slices.contains_key(&case.tool) && !judge::failures(set, case).is_empty()
        };
        // Those that expect an answer by the policy notice a change of it most often.
        let (likely, others): (Vec<&Case>, Vec<&Case>) =
            self.cases.iter().partition(|case| case.names(changed));
        likely.into_iter().chain(others).any(notices)
            || self
                .questions
                .iter()
                .filter(|case| case.is_about(set))
                .any(|case| !question::run(set, case).passed())
    }

    /// The result of asking for an explanation of the case with this name; none if there is none.
    pub fn explain(&self, set: &PolicySet, name: &str) -> Option<crate::explain::Explanation> {
        let case = self.cases.iter().find(|case| case.name == name)?;
        Some(set.explain(&case.call()))
    }

    /// Names of the cases, in the order of the file.
    pub fn case_names(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().map(|case| case.name.as_str())
    }
}

fn read_file(path: &Path, remedy: &str) -> Result<String, LoadError> {
    let fail = |message: String| LoadError::new(vec![about_file(path, message, remedy)]);
    let size = std::fs::metadata(path)
        .map_err(|error| fail(format!("the file cannot be read: {error}")))?
        .len();
    if size > MAX_FILE {
        return Err(fail(format!(
            "the file has {size} bytes, {MAX_FILE} are allowed"
        )));
    }
    std::fs::read_to_string(path).map_err(|error| fail(format!("the file cannot be read: {error}")))
}

/// A moment as test files write it, in microseconds since the epoch.
#[cfg(feature = "cli")]
pub(crate) fn at_moment(text: &str) -> Option<i64> {
    time::instant(text, now())
}

/// The present, in microseconds since the epoch.
#[cfg(feature = "cli")]
pub(crate) fn now() -> i64 {
    chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now()).timestamp_micros()
}

/// Reads the tools of a JSON file.
///
/// # Errors
///
/// If the file cannot be read, or is not a list of tools.
pub fn read_tools(path: &Path) -> Result<Vec<ToolDeclaration>, LoadError> {
    let text = read_file(path, "name a JSON file of tools")?;
    ToolDeclaration::read_list(&path.display().to_string(), &text)
}

/// Reads a Cedar file, or all `.cedar` files of a folder in the order of their names.
///
/// # Errors
///
/// If a file cannot be read, or the folder holds none.
pub fn read_policies(path: &Path) -> Result<Vec<PolicySource>, LoadError> {
    let remedy = "name a Cedar file, or a folder that holds some";
    let fail = |message: String| LoadError::new(vec![about_file(path, message, remedy)]);
    let files = if path.is_dir() {
        let entries = std::fs::read_dir(path)
            .map_err(|error| fail(format!("the folder cannot be read: {error}")))?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "cedar"))
            .collect();
        files.sort();
        if files.is_empty() {
            return Err(fail("the folder holds no `.cedar` file".to_owned()));
        }
        files
    } else {
        vec![path.to_owned()]
    };
    files
        .iter()
        .map(|file| {
            let text = read_file(file, remedy)?;
            Ok(PolicySource::new(file.display().to_string(), text))
        })
        .collect()
}
