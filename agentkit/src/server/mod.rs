//! People approve here: a REST API, an inbox, and the chat of the AI SDK, as one [`axum::Router`].
//!
//! ```no_run
//! # use agentkit::{agent::{Agent, Hosted}, call::Principal, server::{self, Server}};
//! # async fn f<A: Agent>(desk: Hosted<A>) -> Result<(), Box<dyn std::error::Error>> {
//! let tokens = server::StaticTokens::new().token(
//!     // `printf %s "$TOKEN" | sha256sum`
//!     "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".parse()?,
//!     Principal::new("fiona", "token").role("finance"),
//! );
//! let _worker = desk.worker(std::time::Duration::from_secs(1));
//! let router = Server::builder(tokens).agent(&desk).build()?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! server::serve(listener, router, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! **Who** someone is comes from the [`Authenticator`] and from nowhere else; without one there is
//! no router. **What** a decision is about comes from the store: a body names a call and the
//! fingerprint that the person saw, never arguments, unless it amends them. **Whether** someone
//! may decide is the policy's word.
//!
//! A run, a call or a journal is visible to its requester, to those whom the policy lets approve,
//! to those who decided in it, and to auditors; for everyone else it does not exist (404).
//!
//! A decision that lets a run go on is recorded first; then this instance continues the run, in a
//! task that no client's connection can cut off. What an instance that died left behind, and what
//! nobody decided in time, is taken up by a worker
//! ([`Hosted::worker`](crate::agent::Hosted::worker)); hold one beside the server.

mod ai_sdk;
mod api;
mod auth;
mod builder;
mod extract;
mod following;
mod inbox;
mod layers;
mod limits;
mod live;
mod metrics;
mod problem;
mod serve;
mod sight;
mod state;
mod view;

#[cfg(feature = "oidc")]
pub use auth::{Algorithm, Oidc, OidcBuilder, OidcError};
pub use auth::{AuthError, Authenticator, Development, SecretHash, StaticTokens};
pub use builder::{Server, ServerBuilder, ServerError};
pub use limits::Limits;
pub use problem::Problem;
pub use serve::serve;
