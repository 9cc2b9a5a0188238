//! Who someone is.

mod development;
#[cfg(feature = "oidc")]
mod oidc;
pub(super) mod session;
mod static_tokens;

use async_trait::async_trait;
use axum::http::{header, request::Parts};
pub use development::Development;
#[cfg(feature = "oidc")]
pub use oidc::{Algorithm, Oidc, OidcBuilder, OidcError};
pub use static_tokens::{SecretHash, StaticTokens};

use crate::call::Principal;

/// Says who makes a request. It is the only source of identities: no body and no query is ever
/// asked.
///
/// Ready ones are [`StaticTokens`], `Oidc` (feature `oidc`) and [`Development`]. An application
/// with sessions of its own, or behind a proxy that authenticates, writes its own.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Who makes the request, by its headers and extensions.
    ///
    /// # Errors
    ///
    /// When there are no credentials, they do not hold, or cannot be checked now.
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError>;

    /// A warning that every page shows, where the authenticator must not be used in earnest.
    fn warning(&self) -> Option<&'static str> {
        None
    }

    /// Names that the sign-in page offers, each of which is a credential by itself. Only an
    /// authenticator that must not be used in earnest has any.
    fn offers(&self) -> Vec<String> {
        Vec::new()
    }
}

#[async_trait]
impl<T: Authenticator + ?Sized> Authenticator for std::sync::Arc<T> {
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError> {
        T::authenticate(self, request).await
    }

    fn warning(&self) -> Option<&'static str> {
        T::warning(self)
    }

    fn offers(&self) -> Vec<String> {
        T::offers(self)
    }
}

/// Why it cannot be said who makes a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// There are no credentials.
    #[error("no credentials; send `Authorization: Bearer <token>`, or sign in to the inbox")]
    Missing,
    /// The credentials do not hold. The reason is logged; the caller is told only this.
    #[error("the credentials do not hold; get new ones")]
    Invalid {
        /// Why, for the log.
        why: String,
    },
    /// The credentials cannot be checked now.
    #[error("the credentials cannot be checked now")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl AuthError {
    /// Credentials that do not hold.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid { why: why.into() }
    }
}

/// The bearer token of a request (RFC 6750), in its header only.
pub(super) fn bearer(request: &Parts) -> Result<&str, AuthError> {
    let mut values = request.headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthError::Missing)?;
    if values.next().is_some() {
        return Err(AuthError::invalid("several Authorization headers"));
    }
    let value = value
        .to_str()
        .map_err(|_| AuthError::invalid("the Authorization header is not ASCII"))?;
    let (scheme, token) = value
        .split_once(' ')
        .ok_or_else(|| AuthError::invalid("the Authorization header has no token"))?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::invalid("the Authorization header is not Bearer"));
    }
    let token = token.trim();
    if token.is_empty() {
        return Err(AuthError::Missing);
    }
    Ok(token)
}
