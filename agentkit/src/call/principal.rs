use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A person or service as the application's authentication knows it: whoever asks for a run, or
/// decides about a call.
///
/// It is handed in by the application or by the server's authenticator and never read from a
/// request body or from what a model wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Principal {
    /// The id under which policies know the person: `User::"<id>"`.
    pub id: String,
    /// The tenant that the person belongs to, where the application has tenants.
    #[serde(default)]
    pub tenant: Option<String>,
    /// The roles that the person's credentials claimed at the time.
    #[serde(default)]
    pub roles: BTreeSet<String>,
    /// How the person was authenticated, for the journal: `oidc`, `terminal`, …
    pub authenticated_by: String,
}

impl Principal {
    /// A principal without tenant or roles.
    pub fn new(id: impl Into<String>, authenticated_by: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            tenant: None,
            roles: BTreeSet::new(),
            authenticated_by: authenticated_by.into(),
        }
    }

    /// Adds a role.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.roles.insert(role.into());
        self
    }

    /// Sets the tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }
}
