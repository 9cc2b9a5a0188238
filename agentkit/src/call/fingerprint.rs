use std::{fmt, str::FromStr};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::{
    CallId, Canonical, Digest, DigestParseError, FieldHasher, RunId, digest::field_prefix,
};

/// What an approval is bound to: one call, in one run, of one agent, with exactly these
/// arguments, under this slice of the policy, put before a human at this occasion.
///
/// SHA-256 over the fields of [`FingerprintInput`]. Compared in constant time.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// The digest behind it.
    pub const fn digest(&self) -> &Digest {
        &self.0
    }

    /// Four groups of four hexadecimal digits, for a person to compare by eye.
    pub fn short(&self) -> String {
        self.0.short()
    }
}

impl From<Digest> for Fingerprint {
    fn from(digest: Digest) -> Self {
        Self(digest)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = DigestParseError;

    fn from_str(text: &str) -> Result<Self, DigestParseError> {
        text.parse().map(Self)
    }
}

/// 128 random bits that make each occasion on which a call is put before a human its own, so
/// that votes for an earlier one never count, and that a fingerprint of guessable arguments
/// cannot be guessed.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// A fresh nonce from the operating system's generator.
    ///
    /// # Errors
    ///
    /// When the operating system has no randomness to give.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Wraps 16 bytes that were stored.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(…)")
    }
}

/// The fields of a fingerprint, in the order in which they are hashed under the domain
/// `agentkit/approval/v1`. Every field is present in the preimage; an absent one as such.
#[derive(Clone, Copy, Debug)]
pub struct FingerprintInput<'a> {
    /// The tenant of the run.
    pub tenant: Option<&'a str>,
    /// The agent's name.
    pub agent: &'a str,
    /// Digest of the agent's definition.
    pub definition: &'a Digest,
    /// The run.
    pub run: &'a RunId,
    /// The call.
    pub call: &'a CallId,
    /// The delegation path: names of the agents from the root down to the one that calls.
    pub path: &'a [String],
    /// The tool's name.
    pub tool: &'a str,
    /// Digest of the tool's input schema.
    pub input_schema: &'a Digest,
    /// The effective arguments.
    pub arguments: &'a Canonical,
    /// The id of the principal on whose behalf the run acts.
    pub requester: &'a str,
    /// Digest of the policy slice in force for this tool.
    pub policy_slice: &'a Digest,
    /// The nonce of this occasion.
    pub nonce: &'a Nonce,
}

impl FingerprintInput<'_> {
    /// The fingerprint of these fields.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hasher = FieldHasher::new("agentkit/approval/v1");
        hasher
            .optional(self.tenant.map(str::as_bytes))
            .field(self.agent.as_bytes())
            .field(self.definition.as_bytes())
            .field(self.run.as_str().as_bytes())
            .field(self.call.as_str().as_bytes())
            .list(self.path.iter().map(String::as_bytes))
            .field(self.tool.as_bytes())
            .field(self.input_schema.as_bytes())
            .field(self.arguments.as_bytes())
            .field(self.requester.as_bytes())
            .field(self.policy_slice.as_bytes())
            .field(self.nonce.as_bytes());
        Fingerprint(hasher.finish())
    }
}

/// A run's own secret, 256 random bits: the key of its action digests.
#[derive(Clone)]
pub struct RunSecret([u8; 32]);

impl RunSecret {
    /// A fresh secret from the operating system's generator.
    ///
    /// # Errors
    ///
    /// When the operating system has no randomness to give.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Wraps 32 bytes that were stored.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes, for the store.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RunSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunSecret(…)")
    }
}

/// Tells that two calls of one run are the same action: the same tool with the same effective
/// arguments.
///
/// HMAC-SHA256 under the run's secret, since a bare digest of few possible arguments can be
/// guessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionDigest(Digest);

impl ActionDigest {
    /// The action digest of `tool` with `arguments` in the run with this `secret`.
    pub fn of(secret: &RunSecret, tool: &str, arguments: &Canonical) -> Self {
        // HMAC pads a key with zeros to the hash's block of 64 bytes.
        let mut key = [0; 64];
        key.split_at_mut(32).0.copy_from_slice(&secret.0);
        let mut mac = Hmac::<Sha256>::new(&key.into());
        for field in [
            b"agentkit/action/v1".as_slice(),
            tool.as_bytes(),
            arguments.as_bytes(),
        ] {
            mac.update(&field_prefix(field.len()));
            mac.update(field);
        }
        Self(Digest::from_bytes(mac.finalize().into_bytes().into()))
    }

    /// The digest behind it.
    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

impl From<Digest> for ActionDigest {
    fn from(digest: Digest) -> Self {
        Self(digest)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use super::*;

    #[test]
    fn every_field_changes_the_fingerprint() {
        let digest = Digest::of(b"a");
        let other_digest = Digest::of(b"b");
        let (run, call): (RunId, CallId) = ("run-1".parse().unwrap(), "call-1".parse().unwrap());
        let (other_run, other_call): (RunId, CallId) =
            ("call-1".parse().unwrap(), "run-1".parse().unwrap());
        let arguments = Canonical::of(&1).unwrap();
        let other_arguments = Canonical::of(&2).unwrap();
        let nonce = Nonce::from_bytes([0; 16]);
        let other_nonce = Nonce::from_bytes([1; 16]);
        let path = ["root".to_owned()];
        let other_path = ["ro".to_owned(), "ot".to_owned()];
        let base = FingerprintInput {
            tenant: None,
            agent: "desk",
            definition: &digest,
            run: &run,
            call: &call,
            path: &path,
            tool: "pay",
            input_schema: &digest,
            arguments: &arguments,
            requester: "alice",
            policy_slice: &digest,
            nonce: &nonce,
        };
        let variants = [
            base,
            FingerprintInput {
                tenant: Some(""),
                ..base
            },
            FingerprintInput {
                agent: "desk2",
                ..base
            },
            FingerprintInput {
                definition: &other_digest,
                ..base
            },
            FingerprintInput {
                run: &other_run,
                ..base
            },
            FingerprintInput {
                call: &other_call,
                ..base
            },
            FingerprintInput {
                path: &other_path,
                ..base
            },
            FingerprintInput { path: &[], ..base },
            FingerprintInput {
                tool: "payalice",
                requester: "",
                ..base
            },
            FingerprintInput {
                input_schema: &other_digest,
                ..base
            },
            FingerprintInput {
                arguments: &other_arguments,
                ..base
            },
            FingerprintInput {
                requester: "bob",
                ..base
            },
            FingerprintInput {
                policy_slice: &other_digest,
                ..base
            },
            FingerprintInput {
                nonce: &other_nonce,
                ..base
            },
        ];
        for (index, one) in variants.iter().enumerate() {
            for other in variants.iter().skip(index + 1) {
                assert_ne!(one.fingerprint(), other.fingerprint(), "{one:?} {other:?}");
            }
        }
    }

    /// The vector that an independent verifier starts from: a change of it is a new version.
    #[test]
    fn the_encoding_is_version_1() {
        let digest = Digest::from_bytes([7; 32]);
        let input = FingerprintInput {
            tenant: Some("acme"),
            agent: "refund-desk",
            definition: &digest,
            run: &"run-1".parse().unwrap(),
            call: &"call-1".parse().unwrap(),
            path: &["refund-desk".to_owned()],
            tool: "issue_refund",
            input_schema: &digest,
            arguments: &Canonical::of(&serde_json::json!({"order_id": "ord-1", "amount_cents": 5}))
                .unwrap(),
            requester: "alice",
            policy_slice: &digest,
            nonce: &Nonce::from_bytes([9; 16]),
        };
        let seven = [7_u8; 32];
        let fields: [Option<&[u8]>; 14] = [
            Some(b"agentkit/approval/v1"),
            Some(b"acme"),
            Some(b"refund-desk"),
            Some(&seven),
            Some(b"run-1"),
            Some(b"call-1"),
            Some(&[0, 0, 0, 0, 0, 0, 0, 1]),
            Some(b"refund-desk"),
            Some(b"issue_refund"),
            Some(&seven),
            Some(br#"{"amount_cents":5,"order_id":"ord-1"}"#),
            Some(b"alice"),
            Some(&seven),
            Some(&[9; 16]),
        ];
        let mut preimage = Vec::new();
        for field in fields.into_iter().flatten() {
            preimage.push(1);
            preimage.extend((field.len() as u64).to_be_bytes());
            preimage.extend(field);
        }
        assert_eq!(input.fingerprint().digest(), &Digest::of(&preimage));
    }

    #[test]
    fn action_digests_are_keyed() {
        let (one, two) = (
            RunSecret::from_bytes([1; 32]),
            RunSecret::from_bytes([2; 32]),
        );
        let arguments = Canonical::of(&serde_json::json!({"amount": 100})).unwrap();
        assert_eq!(
            ActionDigest::of(&one, "pay", &arguments),
            ActionDigest::of(&one, "pay", &arguments)
        );
        assert_ne!(
            ActionDigest::of(&one, "pay", &arguments),
            ActionDigest::of(&two, "pay", &arguments)
        );
        assert_ne!(
            ActionDigest::of(&one, "pay", &arguments),
            ActionDigest::of(&one, "pax", &arguments)
        );
    }
}
