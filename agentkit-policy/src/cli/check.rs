//! `check` and `schema`: whether tools and policies load, and what policies can be written about.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::declaration::Settings;
use crate::set::PolicySet;
use crate::slice::Schemas;
use crate::suite::read_tools;

use super::input::Input;
use super::{FAILED, Format, OK, finding_json, invalid};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    input: Input,
    /// Fail on what is only worth a look, with exit code 1.
    #[arg(long)]
    strict: bool,
    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn check(args: &CheckArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let set = match args.input.read().and_then(|input| input.load()) {
        Ok(set) => set,
        Err(error) => return invalid(&error, args.format, out, err),
    };
    let warnings = set.warnings();
    let code = if args.strict && !warnings.is_empty() {
        FAILED
    } else {
        OK
    };
    match args.format {
        Format::Text => {
            for warning in warnings {
                writeln!(err, "warning: {warning}")?;
            }
            writeln!(
                out,
                "{} policies over {} tools load, {} warnings",
                set.policies().count(),
                set.slices.len(),
                warnings.len()
            )?;
            writeln!(
                out,
                "policy set sha256:{}",
                crate::shape::hex(&set.digest())
            )?;
        }
        Format::Json => {
            let warnings: Vec<Value> = warnings.iter().map(finding_json).collect();
            let report = json!({
                "exit": code,
                "policies": set.policies().count(),
                "tools": set.slices.len(),
                "digest": crate::shape::hex(&set.digest()),
                "warnings": warnings,
            });
            writeln!(out, "{report:#}")?;
        }
    }
    Ok(code)
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// JSON file of the tools: MCP's `tools/list`, or a list of `name` and `input_schema`.
    #[arg(required = true)]
    tools: Vec<PathBuf>,
}

pub(super) fn schema(
    args: &SchemaArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut tools = Vec::new();
    for path in &args.tools {
        match read_tools(path) {
            Ok(more) => tools.extend(more),
            Err(error) => return invalid(&error, Format::Text, out, err),
        }
    }
    match PolicySet::load(&tools, &[], &Settings::default(), &Schemas::default()) {
        Ok(set) => {
            write!(out, "{}", set.schema_text())?;
            Ok(OK)
        }
        Err(error) => invalid(&error, Format::Text, out, err),
    }
}
