use std::{error::Error, fmt};

/// Arguments, or an answer, that do not fit their type. Displays as a text that a model or a
/// person can act on: every problem with its path, what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    subject: String,
    problems: Vec<ArgumentProblem>,
}

/// One thing that is wrong with arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentProblem {
    /// Where, as a path such as `$.items[2].name`; `$` is the whole.
    pub path: String,
    /// What is wrong there, and what to do about it.
    pub message: String,
    /// What was expected, where that can be told apart.
    pub expected: Option<String>,
    /// What was found instead, where that can be told apart.
    pub found: Option<String>,
    /// The values that are allowed there, as JSON, where they can be listed.
    pub allowed: Vec<String>,
}

impl ArgumentError {
    /// Problems, after a start such as ``the arguments of `issue_refund` do not fit``.
    pub(crate) fn new(subject: impl Into<String>, problems: Vec<ArgumentProblem>) -> Self {
        Self {
            subject: subject.into(),
            problems,
        }
    }

    /// One problem.
    pub(crate) fn one(subject: impl Into<String>, problem: ArgumentProblem) -> Self {
        Self::new(subject, vec![problem])
    }

    /// The problems, at least one.
    pub fn problems(&self) -> &[ArgumentProblem] {
        &self.problems
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject)?;
        for (index, problem) in self.problems.iter().enumerate() {
            let lead = if index == 0 { ": " } else { "; " };
            write!(f, "{lead}{problem}")?;
        }
        Ok(())
    }
}

impl Error for ArgumentError {}

impl ArgumentProblem {
    /// A problem without a separate expectation.
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            expected: None,
            found: None,
            allowed: Vec::new(),
        }
    }

    /// Something was found where something else was expected.
    pub(crate) fn mismatch(
        path: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let (expected, found) = (expected.into(), found.into());
        Self {
            path: path.into(),
            message: format!("expected {expected}, found {found}"),
            expected: Some(expected),
            found: Some(found),
            allowed: Vec::new(),
        }
    }
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path == "$" {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}`: {}", self.path, self.message)
        }
    }
}
