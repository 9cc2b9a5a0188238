use std::str::FromStr;

use async_trait::async_trait;
use axum::http::request::Parts;

use super::{AuthError, Authenticator, bearer};
use crate::call::{Digest, DigestParseError, Principal};

/// The SHA-256 of a token, written `sha256:` and 64 hexadecimal digits: what is kept of it.
///
/// A plain hash is enough only because a token is long and random. Make one with
/// `openssl rand -hex 32` and its hash with `printf %s "$TOKEN" | sha256sum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretHash(Digest);

impl SecretHash {
    /// The hash of a token.
    pub fn of(token: &str) -> Self {
        Self(Digest::of(token.as_bytes()))
    }
}

impl FromStr for SecretHash {
    type Err = DigestParseError;

    fn from_str(text: &str) -> Result<Self, DigestParseError> {
        text.parse().map(Self)
    }
}

/// Tokens that are known in advance, of which only hashes are kept. For services, scripts and
/// small teams.
#[derive(Clone, Debug, Default)]
pub struct StaticTokens(Vec<(SecretHash, Principal)>);

impl StaticTokens {
    /// No tokens: nobody gets in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whoever presents the token of this hash is `principal`.
    pub fn token(mut self, hash: SecretHash, principal: Principal) -> Self {
        self.0.push((hash, principal));
        self
    }
}

/// The shortest token that is looked at: what can be guessed is none.
const SHORTEST: usize = 20;

#[async_trait]
impl Authenticator for StaticTokens {
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError> {
        let token = bearer(request)?;
        if token.len() < SHORTEST {
            return Err(AuthError::invalid("a token of fewer than 20 characters"));
        }
        let given = SecretHash::of(token);
        // All are compared, each in constant time, so that the time tells nothing.
        let mut found = None;
        for (hash, principal) in &self.0 {
            if *hash == given {
                found = Some(principal);
            }
        }
        found
            .cloned()
            .ok_or_else(|| AuthError::invalid("no such token"))
    }
}
