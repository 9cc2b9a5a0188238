//! The policy command alone, for those who write policies and have no agent at hand.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agentkit_policy::cli::{INVALID, PolicyArgs, run};
use clap::Parser;

#[derive(Parser)]
#[command(name = "agentkit-policy", version, about)]
struct Program {
    #[command(flatten)]
    policy: PolicyArgs,
}

fn main() -> ExitCode {
    let program = Program::parse();
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let code = run(&program.policy, &mut out, &mut err).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    // Whoever closed the pipe does not want to read the rest.
    ExitCode::from(code.unwrap_or(INVALID))
}
