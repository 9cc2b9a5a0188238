//! The text under construction: scalars, brackets, and the order of members.

use std::cmp::Ordering;

use super::{CanonicalError, CanonicalErrorKind, Limits, number};

/// One member of an object that is still open, as positions in the text.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) key: usize,
    pub(super) colon: usize,
    pub(super) end: usize,
}

pub(super) struct Writer {
    pub(super) out: Vec<u8>,
    /// The members of all open objects, innermost last.
    pub(super) members: Vec<Member>,
    scratch: Vec<u8>,
    depth: usize,
    limits: Limits,
}

impl Writer {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            out: Vec::with_capacity(128.min(limits.bytes)),
            members: Vec::new(),
            scratch: Vec::new(),
            depth: 0,
            limits,
        }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), CanonicalError> {
        if self.out.len() + bytes.len() > self.limits.bytes {
            return Err(self.too_large());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn too_large(&self) -> CanonicalError {
        CanonicalError::new(CanonicalErrorKind::TooLarge {
            limit: self.limits.bytes,
        })
    }

    pub(super) fn put_display(&mut self, number: impl Into<i128>) -> Result<(), CanonicalError> {
        let number: i128 = number.into();
        if let Ok(number) = u64::try_from(number) {
            self.put_unsigned(number)
        } else if number >= i64::MIN.into() && number < 0 {
            self.put(b"-")?;
            // The magnitude of an `i64` fits into `u64`.
            self.put_unsigned(u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX))
        } else {
            let kind = CanonicalErrorKind::IntegerOutOfRange(number.to_string());
            Err(CanonicalError::new(kind))
        }
    }

    pub(super) fn put_unsigned(&mut self, mut number: u64) -> Result<(), CanonicalError> {
        let mut digits = [0_u8; 20];
        let mut len = 0;
        for digit in digits.iter_mut().rev() {
            // A remainder of ten is a single digit.
            *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
            len += 1;
            if number == 0 {
                break;
            }
        }
        self.put(digits.get(20 - len..).unwrap_or_default())
    }

    pub(super) fn put_float(&mut self, float: f64) -> Result<(), CanonicalError> {
        if !number::write_float(&mut self.out, float) {
            return Err(CanonicalError::new(CanonicalErrorKind::NotFinite));
        }
        if self.out.len() > self.limits.bytes {
            Err(self.too_large())
        } else {
            Ok(())
        }
    }

    pub(super) fn put_string(&mut self, text: &str) -> Result<(), CanonicalError> {
        if self.out.len() + text.len() + 2 > self.limits.bytes {
            return Err(self.too_large());
        }
        self.out.push(b'"');
        let mut rest = text.as_bytes();
        while let Some(plain) = rest.iter().position(|byte| needs_escape(*byte)) {
            let (before, from) = rest.split_at(plain);
            self.out.extend_from_slice(before);
            if let Some((byte, after)) = from.split_first() {
                self.put_escape(*byte);
                rest = after;
            }
        }
        self.out.extend_from_slice(rest);
        self.put(b"\"")
    }

    fn put_escape(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            _ => {
                let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
                self.out.extend_from_slice(b"\\u00");
                self.out
                    .extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }

    pub(super) fn open(&mut self, bracket: &[u8]) -> Result<(), CanonicalError> {
        if self.depth >= self.limits.depth {
            let kind = CanonicalErrorKind::TooDeep {
                limit: self.limits.depth,
            };
            return Err(CanonicalError::new(kind));
        }
        self.depth += 1;
        self.put(bracket)
    }

    pub(super) fn close(&mut self, bracket: &[u8]) -> Result<(), CanonicalError> {
        self.depth -= 1;
        self.put(bracket)
    }

    pub(super) fn key_of(&self, member: Member) -> &[u8] {
        self.out.get(member.key..member.colon).unwrap_or_default()
    }

    /// Puts the members from `first` on in order. Text before `start` stays.
    pub(super) fn sort(&mut self, start: usize, first: usize) -> Result<(), CanonicalError> {
        let mut members = self.members.split_off(first);
        members.sort_by(|a, b| compare_keys(self.key_of(*a), self.key_of(*b)));
        for pair in members.windows(2) {
            if let [a, b] = pair
                && self.key_of(*a) == self.key_of(*b)
            {
                return Err(duplicate(self.key_of(*a)));
            }
        }
        self.scratch.clear();
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                self.scratch.push(b',');
            }
            let text = self.out.get(member.key..member.end).unwrap_or_default();
            self.scratch.extend_from_slice(text);
        }
        self.out.truncate(start);
        self.out.extend_from_slice(&self.scratch);
        Ok(())
    }
}

pub(super) fn duplicate(quoted: &[u8]) -> CanonicalError {
    CanonicalError::new(CanonicalErrorKind::DuplicateKey(unquote(quoted)))
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

pub(super) fn unquote(quoted: &[u8]) -> String {
    serde_json::from_slice(quoted).unwrap_or_else(|_| String::from_utf8_lossy(quoted).into_owned())
}

/// Orders two keys, as written with quotes and escapes, by their UTF-16 code units.
pub(super) fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    // Without the closing quote, so that a shorter key is the smaller one.
    let (a_text, b_text) = (without_closing(a), without_closing(b));
    let plain = |text: &[u8]| text.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
    if plain(a_text) && plain(b_text) {
        a_text.cmp(b_text)
    } else {
        unquote(a).encode_utf16().cmp(unquote(b).encode_utf16())
    }
}

fn without_closing(quoted: &[u8]) -> &[u8] {
    quoted.split_last().map_or(quoted, |(_, rest)| rest)
}
