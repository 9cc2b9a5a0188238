//! agentkit's command line.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agentkit_policy::cli::{INVALID, PolicyArgs, run};
use clap::{Parser, Subcommand};

/// Agents whose every tool call passes a gate.
#[derive(Parser)]
#[command(name = "agentkit", version)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write and test the policies that decide tool calls.
    Policy(PolicyArgs),
}

fn main() -> ExitCode {
    let Command::Policy(policy) = Program::parse().command;
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let code = run(&policy, &mut out, &mut err).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    // Whoever closed the pipe does not want to read the rest.
    ExitCode::from(code.unwrap_or(INVALID))
}
