use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use axum::{
    extract::ConnectInfo,
    http::{header, request::Parts},
};

use super::{AuthError, Authenticator, bearer};
use crate::call::Principal;

/// **Not authentication.** Lets anyone on this machine be any of the given people by saying the
/// name, so that a server can be tried without setting anything up.
///
/// It answers connections from the loopback interface only, addressed to a loopback name, that
/// came through no proxy; everything else is refused, and so is a server that does not pass peer
/// addresses on (as [`serve`](crate::server::serve) does). Every page shows a warning.
#[derive(Clone, Debug)]
pub struct Development(Vec<Principal>);

impl Development {
    /// These people, whom anyone on this machine can be. Says so in the log.
    pub fn anyone_on_this_machine_as(people: impl IntoIterator<Item = Principal>) -> Self {
        let people: Vec<_> = people.into_iter().collect();
        let names: Vec<_> = people.iter().map(|person| person.id.as_str()).collect();
        tracing::warn!(
            "DEVELOPMENT SIGN-IN: anyone on this machine can be any of {names:?}; loopback only"
        );
        Self(people)
    }
}

#[async_trait]
impl Authenticator for Development {
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError> {
        check_local(request)?;
        let name = bearer(request)?;
        self.0
            .iter()
            .find(|person| person.id == name)
            .cloned()
            .ok_or_else(|| AuthError::invalid("nobody of that name"))
    }

    fn warning(&self) -> Option<&'static str> {
        Some("Development sign-in: anyone on this machine can be anyone. Not for real use.")
    }

    fn offers(&self) -> Vec<String> {
        self.0.iter().map(|person| person.id.clone()).collect()
    }
}

fn check_local(request: &Parts) -> Result<(), AuthError> {
    let Some(ConnectInfo(peer)) = request.extensions.get::<ConnectInfo<SocketAddr>>() else {
        let why = "the server does not pass on peer addresses; use agentkit::server::serve";
        return Err(AuthError::invalid(why));
    };
    if !peer.ip().to_canonical().is_loopback() {
        return Err(AuthError::invalid("a connection from another machine"));
    }
    let proxied = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];
    if proxied
        .iter()
        .any(|name| request.headers.contains_key(*name))
    {
        return Err(AuthError::invalid("a request that came through a proxy"));
    }
    // A page of another site can make a browser call loopback under a name of its own.
    if host_is_loopback(request) {
        Ok(())
    } else {
        Err(AuthError::invalid(
            "a request for a name that is not this machine's",
        ))
    }
}

/// Whether a request is addressed to a loopback name.
pub(super) fn host_is_loopback(request: &Parts) -> bool {
    let host = request
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
