use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// A SHA-256 digest. Shown as `sha256:` and 64 lower-case hexadecimal digits; compared in
/// constant time.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Wraps the 32 bytes of a digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 64 bits in four groups of four digits, for a person to compare by eye. It is
    /// not enough to decide anything with.
    pub fn short(&self) -> String {
        let hex = self.hex();
        let mut short = String::with_capacity(19);
        for (index, digit) in hex.chars().take(16).enumerate() {
            if index > 0 && index % 4 == 0 {
                short.push(' ');
            }
            short.push(digit);
        }
        short
    }

    fn hex(&self) -> String {
        use fmt::Write as _;
        self.0
            .iter()
            .fold(String::with_capacity(64), |mut hex, byte| {
                // Writing to a `String` cannot fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            })
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a digest: expected `sha256:` and 64 lower-case hexadecimal digits")]
pub struct DigestParseError {
    text: String,
}

impl FromStr for Digest {
    type Err = DigestParseError;

    fn from_str(text: &str) -> Result<Self, DigestParseError> {
        parse(text).map(Self).ok_or_else(|| DigestParseError {
            text: text.chars().take(80).collect(),
        })
    }
}

fn parse(text: &str) -> Option<[u8; 32]> {
    let hex = text.strip_prefix("sha256:")?.as_bytes();
    if hex.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *byte = nibble(high)? << 4 | nibble(low)?;
    }
    Some(bytes)
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestParseError;

    fn try_from(text: String) -> Result<Self, DigestParseError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Hashes a list of fields so that no two different lists have the same preimage.
///
/// Each field is one byte (0 absent, 1 present), and for a present one its length in bytes as
/// 64 bits big-endian and then its bytes. The first field is always the domain, such as
/// `agentkit/approval/v1`.
#[derive(Clone)]
pub struct FieldHasher(Sha256);

impl FieldHasher {
    /// Starts a list in `domain`.
    pub fn new(domain: &str) -> Self {
        let mut hasher = Self(Sha256::new());
        hasher.field(domain.as_bytes());
        hasher
    }

    /// Adds a field that is present.
    pub fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(field_prefix(bytes.len()));
        self.0.update(bytes);
        self
    }

    /// Adds a field that may be absent. Absent and empty differ.
    pub fn optional(&mut self, bytes: Option<&[u8]>) -> &mut Self {
        match bytes {
            Some(bytes) => self.field(bytes),
            None => {
                self.0.update([0]);
                self
            }
        }
    }

    /// Adds a list as one field: the number of items (64 bits, big-endian) and the items.
    pub fn list<'a>(&mut self, items: impl ExactSizeIterator<Item = &'a [u8]>) -> &mut Self {
        self.field(&(items.len() as u64).to_be_bytes());
        for item in items {
            self.field(item);
        }
        self
    }

    /// The digest of the list.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// What precedes the bytes of a present field of `len` bytes; keyed digests use it too.
pub(super) fn field_prefix(len: usize) -> [u8; 9] {
    let mut prefix = [1; 9];
    let (_, length) = prefix.split_at_mut(1);
    length.copy_from_slice(&(len as u64).to_be_bytes());
    prefix
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use super::*;

    fn of(build: impl FnOnce(&mut FieldHasher)) -> Digest {
        let mut hasher = FieldHasher::new("test/v1");
        build(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn digests_round_trip_as_text() {
        let digest = Digest::of(b"");
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse::<Digest>().unwrap(), digest);
        assert_eq!(digest.short(), "e3b0 c442 98fc 1c14");
    }

    #[test]
    fn other_spellings_of_a_digest_are_refused() {
        let text = Digest::of(b"x").to_string();
        for wrong in [
            text.to_uppercase(),
            text.replace("sha256:", ""),
            format!("{text}0"),
            text.replace(|c: char| c.is_ascii_digit(), "ä"),
        ] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_two_lists_share_a_preimage() {
        let lists = [
            of(|h| {
                h.field(b"ab").field(b"c");
            }),
            of(|h| {
                h.field(b"a").field(b"bc");
            }),
            of(|h| {
                h.field(b"abc");
            }),
            of(|h| {
                h.field(b"abc").optional(None);
            }),
            of(|h| {
                h.field(b"abc").field(b"");
            }),
            of(|h| {
                h.list([b"abc".as_slice()].into_iter());
            }),
            of(|h| {
                h.list([b"abc".as_slice(), b""].into_iter());
            }),
        ];
        for (index, digest) in lists.iter().enumerate() {
            assert!(
                lists.iter().skip(index + 1).all(|other| other != digest),
                "{index}"
            );
        }
    }
}
