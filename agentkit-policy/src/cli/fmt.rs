//! `fmt`: policy files in Cedar's own layout.

use std::io::{self, Write};
use std::path::PathBuf;

use cedar_policy_formatter::{Config, policies_str_to_pretty};
use clap::Args;

use crate::load_error::{Finding, LoadError};
use crate::policy::lower;
use crate::suite::read_policies;

use super::{FAILED, Format, OK, invalid};

#[derive(Debug, Args)]
pub(super) struct FmtArgs {
    /// Policy files, or folders of them.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write nothing; fail with exit code 1 if a file is not formatted.
    #[arg(long)]
    check: bool,
    /// Greatest width of a line.
    #[arg(long, default_value_t = 100)]
    width: usize,
}

/// Stack for the formatter, which recurses without a limit of its own.
const STACK: usize = 64 * 1024 * 1024;

pub(super) fn fmt(args: &FmtArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let config = Config {
        line_width: args.width,
        indent_width: 2,
    };
    let mut code = OK;
    let mut findings = Vec::new();
    for path in &args.files {
        let sources = match read_policies(path) {
            Ok(sources) => sources,
            Err(error) => {
                findings.extend_from_slice(error.findings());
                continue;
            }
        };
        for source in sources {
            let pretty = stacker::grow(STACK, || policies_str_to_pretty(&source.text, &config));
            match pretty {
                Ok(pretty) if pretty == source.text => {}
                Ok(_) if args.check => {
                    writeln!(out, "{}: not formatted", source.name)?;
                    code = FAILED;
                }
                Ok(pretty) => match std::fs::write(&source.name, pretty) {
                    Ok(()) => writeln!(out, "{}: formatted", source.name)?,
                    Err(error) => findings.push(Finding {
                        file: Some(source.name),
                        ..Finding::about(format!("the file cannot be written: {error}"))
                            .suggest("make it writable, or use `--check`")
                    }),
                },
                Err(error) => findings.push(Finding {
                    file: Some(source.name),
                    ..Finding::about(lower(&error.to_string()))
                        .suggest("run `check`, which says where it is wrong")
                }),
            }
        }
    }
    if findings.is_empty() {
        Ok(code)
    } else {
        invalid(&LoadError::new(findings), Format::Text, out, err)
    }
}
