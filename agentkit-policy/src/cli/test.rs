//! `test`: runs test files and reports for people, programs and CI systems.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::load_error::LoadError;
use crate::suite::{Options, Report, Suite};

use super::{FAILED, INADEQUATE, INVALID, OK, REFUTED, finding_json};

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Test files (`.yaml`).
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Demand a coverage of policies, clauses and questions, in per cent.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    threshold: Option<u32>,
    /// List what the cases do not cover.
    #[arg(long)]
    coverage: bool,
    /// Change the policies one by one and demand that a case notices each change.
    #[arg(long)]
    mutants: bool,
    /// Stop trying mutants of a file after this long, and fail.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    mutant_seconds: u64,
    /// Prove the invariants with cvc5.
    #[arg(long)]
    prove: bool,
    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    format: TestFormat,
    /// Write the result to a file and only a summary to the terminal.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How results of tests are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TestFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For CI systems.
    Junit,
}

pub(super) fn test(args: &TestArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let mut options = Options::default();
    if let Some(percent) = args.threshold {
        options = options.threshold(percent);
    }
    if args.coverage {
        options = options.list_uncovered();
    }
    if args.mutants {
        options = options.mutants(Duration::from_secs(args.mutant_seconds));
    }
    if args.prove {
        options = options.prove();
    }
    let mut reports = Vec::new();
    let mut errors = Vec::new();
    for path in &args.files {
        match Suite::read(path).and_then(|suite| suite.run(&options)) {
            Ok(report) => reports.push(report),
            Err(error) => errors.push(error),
        }
    }
    let code = exit(&reports, &errors);
    if args.format != TestFormat::Json {
        for error in &errors {
            writeln!(err, "{error}")?;
        }
    }
    let text = match args.format {
        TestFormat::Text => reports.iter().map(ToString::to_string).collect(),
        TestFormat::Json => as_json(code, &reports, &errors),
        TestFormat::Junit => match Report::junit(&reports) {
            Ok(text) => text,
            Err(error) => {
                writeln!(err, "the JUnit report cannot be written: {error}")?;
                return Ok(INVALID);
            }
        },
    };
    match &args.output {
        None => write!(out, "{text}")?,
        Some(path) => {
            if let Err(error) = std::fs::write(path, text) {
                writeln!(
                    err,
                    "{}: the report cannot be written: {error}",
                    path.display()
                )?;
                return Ok(INVALID);
            }
            for report in &reports {
                let cases = report.cases.len();
                writeln!(
                    out,
                    "{}: {cases} cases, {} failed",
                    report.file,
                    report.failed()
                )?;
            }
        }
    }
    Ok(code)
}

fn exit(reports: &[Report], errors: &[LoadError]) -> u8 {
    if !errors.is_empty() {
        INVALID
    } else if !reports.iter().all(Report::cases_passed) {
        FAILED
    } else if reports.iter().any(Report::refuted) {
        REFUTED
    } else if !reports.iter().all(Report::adequate) {
        INADEQUATE
    } else {
        OK
    }
}

fn as_json(code: u8, reports: &[Report], errors: &[LoadError]) -> String {
    let errors: Vec<Value> = errors
        .iter()
        .flat_map(|error| error.findings().iter().map(finding_json))
        .collect();
    format!(
        "{:#}\n",
        json!({"exit": code, "files": reports, "errors": errors})
    )
}
