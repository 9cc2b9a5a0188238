use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an id of a {kind}: expected 1 to 128 visible ASCII characters")]
pub struct IdError {
    kind: &'static str,
    text: String,
}

/// The longest id that is accepted, in bytes.
const MAX_LEN: usize = 128;

fn check(kind: &'static str, text: &str) -> Result<(), IdError> {
    let fits = !text.is_empty()
        && text.len() <= MAX_LEN
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits {
        Ok(())
    } else {
        let text = text.chars().take(MAX_LEN).collect();
        Err(IdError { kind, text })
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// A new id (UUID version 7, so that ids sort by the time of their creation).
            #[allow(clippy::new_without_default, reason = "a default id would be a surprise")]
            pub fn new() -> Self {
                Self(Uuid::now_v7().to_string().into_boxed_str())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                check($kind, text)?;
                Ok(Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                check($kind, &text)?;
                Ok(Self(text.into_boxed_str()))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }
    };
}

id! {
    /// Names one run of an agent.
    RunId, "run"
}
id! {
    /// Names one tool call. Ours, not the provider's: providers reuse theirs.
    CallId, "call"
}
id! {
    /// Names one conversation.
    ThreadId, "thread"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use super::*;

    #[test]
    fn new_ids_sort_by_time_and_round_trip() {
        let (first, second) = (RunId::new(), RunId::new());
        assert_ne!(first, second);
        assert_eq!(first.to_string().parse::<RunId>().unwrap(), first);
    }

    #[test]
    fn hostile_ids_are_refused() {
        for text in ["", " ", "a b", "a\n", "ä", &"x".repeat(129)] {
            assert!(text.parse::<CallId>().is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<CallId>("\"\\u0000\"").is_err());
    }
}
