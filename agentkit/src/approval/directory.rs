use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::call::Principal;

/// The application's knowledge of its people, asked by id whenever a decision is to count.
#[async_trait]
pub trait Directory: Send + Sync {
    /// How `person` stands now. The person's claims are those of the time when the decision was
    /// made; a directory that knows better answers from its own records.
    ///
    /// # Errors
    ///
    /// When the directory cannot be asked. The decision does not count then.
    async fn standing(&self, person: &Principal) -> Result<Standing, DirectoryError>;
}

/// What a [`Directory`] says of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The person has these roles now.
    Known {
        /// Roles, as policies name them: `Role::"finance"`.
        roles: BTreeSet<String>,
    },
    /// The directory does not know the person (any more): the person's votes do not count.
    Unknown,
    /// There is no directory. The claims as of the decision count, up to the configured age.
    AsClaimed,
}

/// The directory could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("the directory cannot say how `{person}` stands")]
pub struct DirectoryError {
    person: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl DirectoryError {
    /// Wraps what went wrong when asking about `person`.
    pub fn new(
        person: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            person: person.into(),
            source: source.into(),
        }
    }
}

/// No directory: roles exist only in the credentials that were presented with the decision.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimsOnly;

#[async_trait]
impl Directory for ClaimsOnly {
    async fn standing(&self, _: &Principal) -> Result<Standing, DirectoryError> {
        Ok(Standing::AsClaimed)
    }
}
