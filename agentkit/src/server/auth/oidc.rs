use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use axum::http::request::Parts;
/// How a token is signed.
pub use jsonwebtoken::Algorithm;
use jsonwebtoken::{
    DecodingKey, Validation, decode, decode_header,
    jwk::{Jwk, JwkSet, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{AuthError, Authenticator, bearer};
use crate::call::Principal;

/// Access tokens of an OpenID provider: JWTs (RFC 7519) signed by a key that the provider
/// publishes.
///
/// A token holds when its algorithm is one of those that were pinned (never a symmetric one or
/// `none`), its key is among the provider's, and issuer, audience, expiry and the time before
/// which it is void are as they must be. An unknown key makes the provider's keys be fetched
/// again, though not again and again, so that rotation needs no restart.
pub struct Oidc {
    issuer: String,
    validation: Validation,
    id_claim: Vec<String>,
    roles_claim: Vec<String>,
    tenant_claim: Option<Vec<String>>,
    keys: Keys,
}

/// Where the keys come from.
enum Keys {
    /// The application gave them.
    Given(JwkSet),
    /// The provider publishes them.
    Published(Published),
}

struct Published {
    client: reqwest::Client,
    url: String,
    pause: Duration,
    keys: Mutex<Fetched>,
    refresh: tokio::sync::Mutex<()>,
}

struct Fetched {
    set: Arc<JwkSet>,
    at: Instant,
}

/// How often keys are fetched at most, unless said otherwise.
const PAUSE: Duration = Duration::from_secs(30);

/// How old keys may become: a key that the provider withdrew counts no longer than this.
const AGE: Duration = Duration::from_mins(10);

/// How far clocks may differ, in seconds.
const LEEWAY: u64 = 30;

/// The largest answer of a provider, in bytes.
const ANSWER: usize = 1 << 20;

/// Why a provider cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OidcError {
    /// An algorithm cannot be pinned.
    #[error(
        "`{0:?}` is symmetric: whoever checks such tokens could make them; pin RS256, ES256 or EdDSA"
    )]
    Algorithm(Algorithm),
    /// The address is not safe.
    #[error("`{url}` is not `https`; keys that come in the clear can be anyone's")]
    Insecure {
        /// The address.
        url: String,
    },
    /// The provider could not be asked.
    #[error("the provider at `{url}` could not be asked")]
    Fetch {
        /// The address.
        url: String,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The keys that were given are none.
    #[error("the keys are no JSON Web Key Set (RFC 7517)")]
    Keys(#[source] serde_json::Error),
    /// The provider says that it is another one.
    #[error("the provider calls itself `{found}`, not `{expected}`; tokens would be refused")]
    Issuer {
        /// What it says.
        found: String,
        /// What was configured.
        expected: String,
    },
}

/// Builds an [`Oidc`].
#[must_use]
pub struct OidcBuilder {
    issuer: String,
    audience: String,
    algorithms: Vec<Algorithm>,
    id_claim: String,
    roles_claim: String,
    tenant_claim: Option<String>,
    loopback: bool,
    pause: Duration,
}

impl Oidc {
    /// Tokens of `issuer` (its address, without `/.well-known/…`) for `audience` (this server, as
    /// the provider calls it).
    pub fn builder(issuer: impl Into<String>, audience: impl Into<String>) -> OidcBuilder {
        OidcBuilder {
            issuer: issuer.into(),
            audience: audience.into(),
            algorithms: vec![Algorithm::RS256],
            id_claim: "sub".to_owned(),
            roles_claim: "roles".to_owned(),
            tenant_claim: None,
            loopback: false,
            pause: PAUSE,
        }
    }
}

impl OidcBuilder {
    /// The algorithms that tokens may be signed with: RS256 unless said otherwise.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// The claim that holds the person's id: `sub` unless said otherwise. It must be one that the
    /// provider never gives to another person, which an address of mail is not.
    pub fn id_claim(mut self, path: impl Into<String>) -> Self {
        self.id_claim = path.into();
        self
    }

    /// The claim that holds the roles, a list of texts, with dots for nesting:
    /// `realm_access.roles`; `roles` unless said otherwise.
    pub fn roles_claim(mut self, path: impl Into<String>) -> Self {
        self.roles_claim = path.into();
        self
    }

    /// The claim that holds the tenant. A token without it is refused then.
    pub fn tenant_claim(mut self, path: impl Into<String>) -> Self {
        self.tenant_claim = Some(path.into());
        self
    }

    /// Lets a provider on this very machine speak plain HTTP, for tests.
    pub fn allow_http_on_loopback(mut self) -> Self {
        self.loopback = true;
        self
    }

    /// How often the keys are fetched at most when a token names an unknown one: every thirty
    /// seconds unless said otherwise.
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Asks the provider for its configuration and its keys.
    ///
    /// # Errors
    ///
    /// When an algorithm is symmetric, the provider cannot be asked over TLS, or it calls itself
    /// otherwise.
    pub async fn discover(self) -> Result<Oidc, OidcError> {
        self.check_algorithms()?;
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| fetch_error(&self.issuer, error))?;
        let base = self.issuer.trim_end_matches('/');
        let url = format!("{base}/.well-known/openid-configuration");
        check_address(&url, self.loopback)?;
        let found: Configuration = get(&client, &url).await?;
        if found.issuer != self.issuer {
            return Err(OidcError::Issuer {
                found: found.issuer,
                expected: self.issuer,
            });
        }
        check_address(&found.jwks_uri, self.loopback)?;
        let set = get(&client, &found.jwks_uri).await?;
        let published = Published {
            client,
            url: found.jwks_uri,
            pause: self.pause,
            keys: Mutex::new(Fetched {
                set: Arc::new(set),
                at: Instant::now(),
            }),
            refresh: tokio::sync::Mutex::new(()),
        };
        Ok(self.with(Keys::Published(published)))
    }

    /// Takes the keys from the text of a JWKS (RFC 7517), as out of a file, and asks nobody. New
    /// keys take a new `Oidc`.
    ///
    /// # Errors
    ///
    /// When an algorithm is symmetric, or the text is no JWKS with a key in it.
    pub fn keys(self, jwks: &str) -> Result<Oidc, OidcError> {
        self.check_algorithms()?;
        let set: JwkSet = serde_json::from_str(jwks).map_err(OidcError::Keys)?;
        if set.keys.is_empty() {
            let none = serde::de::Error::custom("there is no key in it");
            return Err(OidcError::Keys(none));
        }
        Ok(self.with(Keys::Given(set)))
    }

    fn check_algorithms(&self) -> Result<(), OidcError> {
        let symmetric = self.algorithms.iter().find(|one| is_symmetric(**one));
        symmetric.map_or(Ok(()), |one| Err(OidcError::Algorithm(*one)))
    }

    fn with(self, keys: Keys) -> Oidc {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.algorithms = self.algorithms;
        validation.set_audience(&[self.audience]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY;
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        Oidc {
            id_claim: path(&self.id_claim),
            roles_claim: path(&self.roles_claim),
            tenant_claim: self.tenant_claim.as_deref().map(path),
            issuer: self.issuer,
            validation,
            keys,
        }
    }
}

#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

const fn is_symmetric(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    )
}

fn check_address(url: &str, loopback: bool) -> Result<(), OidcError> {
    let local = ["http://127.0.0.1:", "http://[::1]:", "http://localhost:"];
    if url.starts_with("https://") || (loopback && local.iter().any(|start| url.starts_with(start)))
    {
        Ok(())
    } else {
        Err(OidcError::Insecure {
            url: url.to_owned(),
        })
    }
}

fn fetch_error(
    url: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> OidcError {
    OidcError::Fetch {
        url: url.to_owned(),
        source: source.into(),
    }
}

async fn get<T: serde::de::DeserializeOwned>(
    client: &reqwest::Client,
    url: &str,
) -> Result<T, OidcError> {
    let failed = |error: reqwest::Error| fetch_error(url, error);
    let response = client.get(url).send().await.map_err(failed)?;
    let mut response = response.error_for_status().map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER {
            return Err(fetch_error(url, "the answer is too large"));
        }
    }
    serde_json::from_slice(&bytes).map_err(|error| fetch_error(url, error))
}

impl Keys {
    /// The key of this id.
    async fn find(&self, id: Option<&str>) -> Result<Jwk, AuthError> {
        let found = match self {
            Self::Given(set) => find(set, id),
            Self::Published(published) => published.find(id).await?,
        };
        found.ok_or_else(|| AuthError::invalid("signed with a key that is not published"))
    }
}

impl Published {
    fn current(&self) -> (Arc<JwkSet>, Duration) {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&keys.set), keys.at.elapsed())
    }

    /// The key of this id, from keys that are fresh enough.
    async fn find(&self, id: Option<&str>) -> Result<Option<Jwk>, AuthError> {
        let (set, age) = self.current();
        if age < AGE
            && let Some(key) = find(&set, id)
        {
            return Ok(Some(key));
        }
        let set = self.refreshed(age >= AGE).await?;
        Ok(find(&set, id))
    }

    /// The keys, fetched again unless that was done just now.
    async fn refreshed(&self, needed: bool) -> Result<Arc<JwkSet>, AuthError> {
        // One at a time; whoever waited finds what the first one fetched.
        let _one = self.refresh.lock().await;
        let (set, age) = self.current();
        if age < self.pause {
            return Ok(set);
        }
        match get::<JwkSet>(&self.client, &self.url).await {
            Ok(fetched) => {
                let set = Arc::new(fetched);
                let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
                *keys = Fetched {
                    set: Arc::clone(&set),
                    at: Instant::now(),
                };
                Ok(set)
            }
            // Keys that are still young hold while the provider is away.
            Err(error) if !needed => {
                tracing::warn!(%error, "fetching keys");
                Ok(set)
            }
            Err(error) => Err(AuthError::Unavailable(Box::new(error))),
        }
    }
}

impl Oidc {
    fn principal(&self, claims: &Map<String, Value>) -> Result<Principal, AuthError> {
        let text = |path: &[String]| {
            let value = at(claims, path)?.as_str()?;
            (!value.is_empty()).then(|| value.to_owned())
        };
        let id = text(&self.id_claim)
            .ok_or_else(|| AuthError::invalid("the token has no claim for the person's id"))?;
        let mut principal = Principal::new(id, "oidc");
        principal.roles = match at(claims, &self.roles_claim) {
            Some(Value::Array(roles)) => roles
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => BTreeSet::new(),
        };
        if let Some(path) = &self.tenant_claim {
            let tenant = text(path)
                .ok_or_else(|| AuthError::invalid("the token has no claim for the tenant"))?;
            principal.tenant = Some(tenant);
        }
        Ok(principal)
    }
}

fn at<'a>(claims: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(claims.get(first)?, |value, name| value.get(name))
}

/// The key of an id; without an id the only key, if there is only one.
fn find(set: &JwkSet, id: Option<&str>) -> Option<Jwk> {
    let signs = |key: &&Jwk| !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption));
    match id {
        Some(id) => set.find(id).filter(signs).cloned(),
        None => match set.keys.as_slice() {
            [only] => Some(only).filter(signs).cloned(),
            _ => None,
        },
    }
}

#[async_trait]
impl Authenticator for Oidc {
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError> {
        let token = bearer(request)?;
        let invalid = |error: jsonwebtoken::errors::Error| {
            AuthError::invalid(format!("token of `{}`: {error}", self.issuer))
        };
        let header = decode_header(token).map_err(invalid)?;
        // Before any key is fetched for the sake of a token that cannot hold.
        if !self.validation.algorithms.contains(&header.alg) {
            return Err(AuthError::invalid(
                "signed with an algorithm that is not pinned",
            ));
        }
        let key = self.keys.find(header.kid.as_deref()).await?;
        let key = DecodingKey::from_jwk(&key).map_err(invalid)?;
        let claims =
            decode::<Map<String, Value>>(token, &key, &self.validation).map_err(invalid)?;
        self.principal(&claims.claims)
    }
}
