//! Why a value has no canonical text.

use std::fmt;

use serde::ser;

/// Why a value has no canonical text. Displays as one sentence with the path.
#[derive(Debug)]
pub struct CanonicalError {
    kind: CanonicalErrorKind,
    /// From the inside out.
    path: Vec<String>,
}

/// The kinds of [`CanonicalError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CanonicalErrorKind {
    /// More bytes than the limit.
    TooLarge {
        /// How many bytes are allowed.
        limit: usize,
    },
    /// More levels of nesting than the limit.
    TooDeep {
        /// How many levels are allowed.
        limit: usize,
    },
    /// NaN or an infinity.
    NotFinite,
    /// An integer outside of `i64` and `u64`.
    IntegerOutOfRange(String),
    /// A map key that is neither a string nor an integer, a boolean or a character.
    KeyNotText,
    /// The same key twice in one object, as a flattened map can bring about.
    DuplicateKey(String),
    /// JSON text that was to be taken over unread (`serde_json::value::RawValue`).
    RawText,
    /// An error of a type's own `Serialize`.
    Custom(String),
}

impl CanonicalError {
    pub(super) fn new(kind: CanonicalErrorKind) -> Self {
        Self {
            kind,
            path: Vec::new(),
        }
    }

    pub(super) fn within(mut self, step: String) -> Self {
        self.path.push(step);
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> &CanonicalErrorKind {
        &self.kind
    }

    /// Where, as a path such as `$.items[2].name`.
    pub fn path(&self) -> String {
        let mut path = String::from("$");
        path.extend(self.path.iter().rev().map(String::as_str));
        path
    }
}

impl fmt::Display for CanonicalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        match &self.kind {
            CanonicalErrorKind::TooLarge { limit } => {
                write!(
                    f,
                    "the value needs more than {limit} bytes of JSON at `{path}`"
                )
            }
            CanonicalErrorKind::TooDeep { limit } => {
                write!(f, "`{path}` is nested more than {limit} levels deep")
            }
            CanonicalErrorKind::NotFinite => {
                write!(f, "`{path}` is NaN or infinite, which JSON cannot express")
            }
            CanonicalErrorKind::IntegerOutOfRange(text) => {
                write!(
                    f,
                    "`{path}` is `{text}`, outside of i64 and u64; use a string"
                )
            }
            CanonicalErrorKind::KeyNotText => {
                write!(f, "a key of `{path}` is not text; use strings as keys")
            }
            CanonicalErrorKind::DuplicateKey(key) => {
                write!(f, "`{path}` has the key `{key}` twice")
            }
            CanonicalErrorKind::RawText => {
                write!(f, "`{path}` is raw JSON text; use `serde_json::Value`")
            }
            CanonicalErrorKind::Custom(text) => write!(f, "`{path}` cannot be serialised: {text}"),
        }
    }
}

impl std::error::Error for CanonicalError {}

impl ser::Error for CanonicalError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(CanonicalErrorKind::Custom(message.to_string()))
    }
}
