//! Tool calls as pure data: effective arguments in canonical form, fingerprints, ids, and the
//! state machine of a call.
//!
//! Nothing in this module performs I/O or knows of models, policies or databases, so that the
//! two promises that rest on it (what the approver saw is what runs; at most one execution) can
//! be read and tested on their own.

mod canonical;
mod digest;
mod fingerprint;
mod id;
mod principal;
mod state;
mod time;

pub use canonical::{
    Canonical, CanonicalError, CanonicalErrorKind, JsonError, JsonErrorKind, Limits, StoredError,
    decode_value,
};
pub use digest::{Digest, DigestParseError, FieldHasher};
pub use fingerprint::{ActionDigest, Fingerprint, FingerprintInput, Nonce, RunSecret};
pub use id::{CallId, IdError, RunId, ThreadId};
pub use principal::Principal;
pub use state::{CallEvent, CallState, IllegalTransition, UnknownState};
pub use time::Timestamp;
