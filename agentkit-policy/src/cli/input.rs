//! What the commands are about: a test file, or tools and policies named one by one.

use std::path::PathBuf;

use clap::Args;

use crate::declaration::{PolicySource, Settings, ToolDeclaration};
use crate::load_error::{Finding, LoadError};
use crate::set::PolicySet;
use crate::slice::Schemas;
use crate::suite::{Suite, read_policies, read_tools};

#[derive(Debug, Args)]
pub(super) struct Input {
    /// A test file (`.yaml`), which names its tools and policies; or policy files and folders.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// JSON file of the tools: MCP's `tools/list`, or a list of `name` and `input_schema`.
    #[arg(long, value_name = "FILE")]
    tools: Vec<PathBuf>,
}

/// What the files of a command hold.
pub(super) enum Loaded {
    Suite(Box<Suite>),
    Files(Vec<ToolDeclaration>, Vec<PolicySource>),
}

impl Input {
    pub(super) fn read(&self) -> Result<Loaded, LoadError> {
        let is_suite = |path: &PathBuf| {
            path.extension()
                .is_some_and(|ending| ending == "yaml" || ending == "yml")
        };
        if let [only] = self.files.as_slice()
            && is_suite(only)
        {
            return Suite::read(only).map(|suite| Loaded::Suite(Box::new(suite)));
        }
        if let Some(path) = self.files.iter().find(|path| is_suite(path)) {
            return Err(usage(
                format!("`{}` is a test file among others", path.display()),
                "name one test file alone, or policy files with `--tools`",
            ));
        }
        if self.tools.is_empty() {
            return Err(usage(
                "no tools are named, and policies are checked against their arguments".to_owned(),
                "add `--tools tools.json`, or name a test file (`.yaml`)",
            ));
        }
        let mut findings = Vec::new();
        let mut keep = |error: LoadError| findings.extend_from_slice(error.findings());
        let mut tools = Vec::new();
        for path in &self.tools {
            read_tools(path).map_or_else(&mut keep, |more| tools.extend(more));
        }
        let mut sources = Vec::new();
        for path in &self.files {
            read_policies(path).map_or_else(&mut keep, |more| sources.extend(more));
        }
        if findings.is_empty() {
            Ok(Loaded::Files(tools, sources))
        } else {
            Err(LoadError::new(findings))
        }
    }
}

impl Loaded {
    pub(super) fn load(&self) -> Result<PolicySet, LoadError> {
        match self {
            Self::Suite(suite) => suite.load(),
            Self::Files(tools, sources) => {
                PolicySet::load(tools, sources, &Settings::default(), &Schemas::default())
            }
        }
    }
}

/// An error of the command line itself.
pub(super) fn usage(message: String, remedy: &str) -> LoadError {
    LoadError::new(vec![Finding::about(message).suggest(remedy)])
}
