//! The canonical text of effective arguments: RFC 8785 (JCS) with exact integers.
//!
//! RFC 8785 follows I-JSON and squeezes every number through a double, so that
//! 9007199254740993 and 9007199254740992 would share a text, a fingerprint and an approval. Here
//! integers of `i64` and `u64` keep their digits, and a float whose magnitude reaches 2^53 is
//! written with an exponent, so that no float shares a text with a different integer. For all
//! that I-JSON can express exactly, the text is that of RFC 8785.

mod container;
mod decode;
mod error;
mod number;
mod text;
mod text_only;
mod write;

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

pub use decode::{JsonError, JsonErrorKind, decode_value};
pub use error::{CanonicalError, CanonicalErrorKind};

/// Bounds that hold before anything is allocated for what exceeds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of JSON text.
    pub bytes: usize,
    /// The most levels of arrays and objects inside one another.
    pub depth: usize,
}

impl Limits {
    /// Other limits than the default ones.
    pub const fn new(bytes: usize, depth: usize) -> Self {
        Self { bytes, depth }
    }
}

impl Default for Limits {
    /// 1 MiB and 128 levels.
    fn default() -> Self {
        Self {
            bytes: 1 << 20,
            depth: 128,
        }
    }
}

/// JSON text in canonical form: equal texts if and only if equal values.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Canonical(Box<str>);

impl Canonical {
    /// The canonical text of `value`, within the default [`Limits`].
    ///
    /// # Errors
    ///
    /// When the value has no canonical text: NaN or an infinity, an integer outside of `i64` and
    /// `u64`, a key that is no string, the same key twice, or more than the limits allow. The
    /// error names the path.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, CanonicalError> {
        Self::of_within(value, Limits::default())
    }

    /// The canonical text of `value`, within `limits`.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of).
    pub fn of_within<T: Serialize + ?Sized>(
        value: &T,
        limits: Limits,
    ) -> Result<Self, CanonicalError> {
        write::canonical_text(value, limits).map(|text| Self(text.into_boxed_str()))
    }

    /// Takes back a text that was stored. It is checked, since a stored row is hostile until
    /// then.
    ///
    /// # Errors
    ///
    /// When the text is not JSON or not in canonical form.
    pub fn from_stored(text: impl Into<Box<str>>) -> Result<Self, StoredError> {
        let text = text.into();
        // The text was within its limits when it was written; only the depth protects the stack.
        let limits = Limits {
            bytes: text.len(),
            ..Limits::default()
        };
        let value = decode_value(&text, limits).map_err(StoredError::NotJson)?;
        let again = write::canonical_text(&value, limits).map_err(StoredError::NoCanonicalForm)?;
        if *again == *text {
            Ok(Self(text))
        } else {
            Err(StoredError::NotCanonical)
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes of the text, UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The value decoded into a type.
    ///
    /// # Errors
    ///
    /// When the type does not accept the value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The value as a tree.
    ///
    /// # Errors
    ///
    /// Never for a text that was made by this type; the result spares a panic.
    pub fn to_value(&self) -> Result<serde_json::Value, JsonError> {
        decode_value(
            &self.0,
            Limits {
                bytes: self.0.len(),
                ..Limits::default()
            },
        )
    }
}

impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a stored text is not taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoredError {
    /// The text is not JSON, or not JSON that was ever accepted.
    #[error("the stored text is not JSON")]
    NotJson(#[source] JsonError),
    /// The text holds a value that has no canonical form.
    #[error("the stored text has no canonical form")]
    NoCanonicalForm(#[source] CanonicalError),
    /// The text is JSON in another form: it was not written by this library.
    #[error("the stored text is not in canonical form")]
    NotCanonical,
}

#[cfg(test)]
mod tests;
