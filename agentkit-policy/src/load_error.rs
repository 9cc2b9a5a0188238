//! Why a set of tools and policies does not load.

use std::fmt;

/// Everything that is wrong with a set of tools and policies; at least one finding.
///
/// Its text lists every finding on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    findings: Vec<Finding>,
}

impl LoadError {
    pub(crate) fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    /// The findings, in the order of files and lines.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

/// One thing that is wrong, or worth a look, with a place and a remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    pub(crate) tool: Option<String>,
    pub(crate) property: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
    pub(crate) policy: Option<String>,
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
}

impl Finding {
    /// The tool that it concerns.
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// Path of the property of the tool's schema that it concerns, such as `order.items[].price`.
    pub fn property(&self) -> Option<&str> {
        self.property.as_deref()
    }

    /// Name of the source that holds it.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Line of the source, counted from 1.
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// Column of the line in characters, counted from 1.
    pub fn column(&self) -> Option<u32> {
        self.column
    }

    /// The policy's `@id`.
    pub fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }

    pub(crate) fn about(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    pub(crate) fn tool_named(mut self, tool: &str) -> Self {
        self.tool = Some(tool.to_owned());
        self
    }

    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
                if let Some(column) = self.column {
                    write!(f, ":{column}")?;
                }
            }
            f.write_str(": ")?;
        }
        if let Some(policy) = &self.policy {
            write!(f, "policy `{policy}`: ")?;
        }
        if let Some(tool) = &self.tool {
            write!(f, "tool `{tool}`: ")?;
        }
        if let Some(property) = &self.property {
            write!(f, "argument `{property}`: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; {suggestion}")?;
        }
        Ok(())
    }
}
