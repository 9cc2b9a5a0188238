//! Why a set of tools and policies does not load.

use std::fmt::{self, Write as _};

/// A text that nobody reads to its end is cut here.
const MOST_SHOWN: usize = 100;
/// Lines of files are shown up to this many characters.
const MOST_OF_LINE: usize = 160;

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

/// One line for each finding; with `{:#}` each with the line of the file that it is about.
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().take(MOST_SHOWN).enumerate() {
            if index > 0 {
                f.write_str(if f.alternate() { "\n\n" } else { "\n" })?;
            }
            finding.fmt(f)?;
        }
        match self.findings.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
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
    /// Bytes from the column on that it is about; 0 if that is not known.
    pub(crate) length: usize,
    /// The line of the source.
    pub(crate) shown: Option<String>,
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

/// One line; with `{:#}` also the line of the file, with the place marked.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return self.report(f);
        }
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
        }
        self.about_what(f)?;
        f.write_str(&self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; {suggestion}")?;
        }
        Ok(())
    }
}

impl Finding {
    fn place(&self) -> Option<String> {
        let mut place = self.file.clone()?;
        for part in [self.line, self.line.and(self.column)]
            .into_iter()
            .flatten()
        {
            let _ = write!(place, ":{part}");
        }
        Some(place)
    }

    fn about_what(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(policy) = &self.policy {
            write!(f, "policy `{policy}`: ")?;
        }
        if let Some(tool) = &self.tool {
            write!(f, "tool `{tool}`: ")?;
        }
        if let Some(property) = &self.property {
            write!(f, "argument `{property}`: ")?;
        }
        Ok(())
    }

    fn report(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about_what(f)?;
        f.write_str(&self.message)?;
        let number = self.line.map(|line| line.to_string()).unwrap_or_default();
        let margin = " ".repeat(number.len());
        if let Some(place) = self.place() {
            write!(f, "\n{margin}--> {place}")?;
        }
        if let (Some(shown), Some(column)) = (&self.shown, self.column) {
            let column = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
            // Marks and line stand under each other only where every character is one cell wide;
            // control characters would move the cursor.
            let line: String = shown
                .chars()
                .take(MOST_OF_LINE)
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            let rest = line.chars().skip(column);
            let rest: String = rest.collect();
            let whole = rest.trim_end().chars().count();
            let marked = match self.length {
                0 => whole,
                length => length.min(whole),
            };
            let indent = " ".repeat(column.min(MOST_OF_LINE));
            let marks = "^".repeat(marked.max(1));
            write!(
                f,
                "\n{margin} |\n{number} | {line}\n{margin} | {indent}{marks}"
            )?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "\n{margin} = {suggestion}")?;
        }
        Ok(())
    }
}
