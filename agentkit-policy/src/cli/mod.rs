//! The policy command: `check`, `test`, `explain`, `schema`, `fmt`.
//!
//! A program mounts [`PolicyArgs`] where it likes and calls [`run`]; the binary `agentkit-policy`
//! is nothing else.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | all is well |
//! | 1 | a case failed, or there are none; a file is not formatted |
//! | 2 | tools, policies, a test file or the command itself are invalid |
//! | 3 | coverage is below the threshold, or a mutant survives unexplained |
//! | 4 | an invariant is refuted |
//!
//! Where several apply, the first of 2, 1, 4, 3 is reported.

mod check;
mod explain;
mod fmt;
mod input;
mod test;

use std::io::{self, Write};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::load_error::{Finding, LoadError};

/// All is well.
pub const OK: u8 = 0;
/// A case failed.
pub const FAILED: u8 = 1;
/// Tools, policies or a test file are invalid.
pub const INVALID: u8 = 2;
/// The tests do not reach what was demanded.
pub const INADEQUATE: u8 = 3;
/// An invariant is refuted.
pub const REFUTED: u8 = 4;

/// Write and test the Cedar policies that decide tool calls.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that tools and policies load, and list what is worth a look.
    Check(check::CheckArgs),
    /// Run the cases of test files.
    Test(test::TestArgs),
    /// Say how a call is decided and why.
    Explain(explain::ExplainArgs),
    /// Print the Cedar schema of the tools.
    Schema(check::SchemaArgs),
    /// Format policy files.
    Fmt(fmt::FmtArgs),
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Runs the command and returns the exit code. Results go to `out`, what is wrong to `err`.
///
/// # Errors
///
/// If neither can be written.
pub fn run(args: &PolicyArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match &args.command {
        Command::Check(args) => check::check(args, out, err),
        Command::Test(args) => test::test(args, out, err),
        Command::Explain(args) => explain::explain(args, out, err),
        Command::Schema(args) => check::schema(args, out, err),
        Command::Fmt(args) => fmt::fmt(args, out, err),
    }
}

/// Writes why something is invalid.
fn invalid(
    error: &LoadError,
    format: Format,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    match format {
        Format::Text => writeln!(err, "{error}")?,
        Format::Json => {
            let findings: Vec<Value> = error.findings().iter().map(finding_json).collect();
            writeln!(out, "{:#}", json!({"exit": INVALID, "errors": findings}))?;
        }
    }
    Ok(INVALID)
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "file": finding.file(),
        "line": finding.line(),
        "column": finding.column(),
        "policy": finding.policy(),
        "tool": finding.tool(),
        "argument": finding.property(),
        "message": finding.message(),
        "suggestion": finding.suggestion(),
    })
}
