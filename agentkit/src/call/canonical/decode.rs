//! Strict decoding of JSON text that a model or another stranger wrote.
//!
//! `serde_json` turns an integer beyond `u64` into a float, and keeps the last of two equal
//! keys. Either would let a human approve something else than what runs, so this decoder refuses
//! both, and bounds size and depth.

use std::fmt;

use serde_json::{Map, Value};

use super::{Limits, number};

/// Why a text is not accepted as JSON. Displays as one sentence with the path and the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    kind: JsonErrorKind,
    path: String,
    offset: usize,
}

/// The kinds of [`JsonError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// More bytes than the limit.
    TooLarge {
        /// How many bytes there are.
        bytes: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// More levels of nesting than the limit.
    TooDeep {
        /// How many levels are allowed.
        limit: usize,
    },
    /// Not JSON.
    Syntax(&'static str),
    /// A key that stands twice in one object.
    DuplicateKey(String),
    /// A number that neither `i64`, `u64` nor a double can hold.
    NumberOutOfRange(String),
}

impl JsonError {
    /// What is wrong.
    pub fn kind(&self) -> &JsonErrorKind {
        &self.kind
    }

    /// Where, as a path such as `$.items[2].name`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where, in bytes from the start of the text.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, path, offset } = self;
        match kind {
            JsonErrorKind::TooLarge { bytes, limit } => {
                write!(
                    f,
                    "the JSON text has {bytes} bytes; at most {limit} are accepted"
                )
            }
            JsonErrorKind::TooDeep { limit } => {
                write!(f, "`{path}` is nested more than {limit} levels deep")
            }
            JsonErrorKind::Syntax(expected) => {
                write!(f, "not JSON at byte {offset} (`{path}`): {expected}")
            }
            JsonErrorKind::DuplicateKey(key) => {
                write!(f, "`{path}` has the key `{key}` twice; write it once")
            }
            JsonErrorKind::NumberOutOfRange(text) => write!(
                f,
                "the number `{text}` at `{path}` is out of range; send it as a string if the \
                 tool takes one"
            ),
        }
    }
}

impl std::error::Error for JsonError {}

/// Decodes one JSON value and nothing else.
///
/// # Errors
///
/// When `text` exceeds `limits`, is not JSON (RFC 8259), repeats a key within an object, or
/// holds a number that neither `i64`, `u64` nor a finite double can hold.
pub fn decode_value(text: &str, limits: Limits) -> Result<Value, JsonError> {
    let mut decoder = Decoder {
        text,
        at: 0,
        limits,
        path: Vec::new(),
    };
    if text.len() > limits.bytes {
        let kind = JsonErrorKind::TooLarge {
            bytes: text.len(),
            limit: limits.bytes,
        };
        return Err(decoder.error(kind));
    }
    let value = decoder.value()?;
    decoder.skip_space();
    if decoder.at < text.len() {
        return Err(decoder.syntax("expected the end of the text"));
    }
    Ok(value)
}

enum Step {
    Key(String),
    Index(usize),
}

struct Decoder<'a> {
    text: &'a str,
    at: usize,
    limits: Limits,
    path: Vec<Step>,
}

impl Decoder<'_> {
    fn value(&mut self) -> Result<Value, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.eat("true") => Ok(Value::Bool(true)),
            _ if self.eat("false") => Ok(Value::Bool(false)),
            _ if self.eat("null") => Ok(Value::Null),
            _ => Err(self.syntax("expected a value")),
        }
    }

    fn nested(
        &mut self,
        body: fn(&mut Self) -> Result<Value, JsonError>,
    ) -> Result<Value, JsonError> {
        // One step of the path belongs to each level that is open.
        if self.path.len() >= self.limits.depth {
            return Err(self.error(JsonErrorKind::TooDeep {
                limit: self.limits.depth,
            }));
        }
        self.at += 1;
        body(self)
    }

    fn object(&mut self) -> Result<Value, JsonError> {
        let mut map = Map::new();
        self.skip_space();
        if self.eat("}") {
            return Ok(Value::Object(map));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.syntax("expected a key in double quotes"));
            }
            let key = self.string()?;
            if map.contains_key(&key) {
                return Err(self.error(JsonErrorKind::DuplicateKey(key)));
            }
            self.skip_space();
            if !self.eat(":") {
                return Err(self.syntax("expected `:`"));
            }
            self.path.push(Step::Key(key.clone()));
            let value = self.value()?;
            self.path.pop();
            map.insert(key, value);
            self.skip_space();
            if self.eat("}") {
                return Ok(Value::Object(map));
            }
            if !self.eat(",") {
                return Err(self.syntax("expected `,` or `}`"));
            }
        }
    }

    fn array(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.skip_space();
        if self.eat("]") {
            return Ok(Value::Array(items));
        }
        loop {
            self.path.push(Step::Index(items.len()));
            items.push(self.value()?);
            self.path.pop();
            self.skip_space();
            if self.eat("]") {
                return Ok(Value::Array(items));
            }
            if !self.eat(",") {
                return Err(self.syntax("expected `,` or `]`"));
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        self.at += 1;
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(0..=0x1f) => {
                    return Err(self.syntax("a control character in a string must be escaped"));
                }
                Some(_) => self.at += 1,
                None => {
                    self.at = self.text.len();
                    return Err(self.syntax("the string does not end"));
                }
            }
        }
        self.at += 1;
        if escaped {
            // Escapes, lone surrogates included, are judged by serde_json.
            let token = self.text.get(start..self.at).unwrap_or_default();
            serde_json::from_str(token).map_err(|_| {
                self.at = start;
                self.syntax("the string has an invalid escape or half of a surrogate pair")
            })
        } else {
            Ok(self
                .text
                .get(start + 1..self.at - 1)
                .unwrap_or_default()
                .to_owned())
        }
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        self.eat("-");
        if !self.eat("0") {
            self.digits()?;
        }
        if self.eat(".") {
            self.digits()?;
        }
        if self.eat("e") || self.eat("E") {
            let _ = self.eat("+") || self.eat("-");
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        number::parse(text).map(Value::Number).ok_or_else(|| {
            let shown = text.chars().take(64).collect();
            self.error(JsonErrorKind::NumberOutOfRange(shown))
        })
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.syntax("expected a digit"))
        } else {
            Ok(())
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self
            .text
            .as_bytes()
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(token.as_bytes()));
        if found {
            self.at += token.len();
        }
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn syntax(&self, expected: &'static str) -> JsonError {
        self.error(JsonErrorKind::Syntax(expected))
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        use fmt::Write as _;
        let mut path = String::from("$");
        for step in &self.path {
            // Writing to a `String` cannot fail.
            let _ = match step {
                Step::Key(key) => write!(path, ".{key}"),
                Step::Index(index) => write!(path, "[{index}]"),
            };
        }
        JsonError {
            kind,
            path,
            offset: self.at,
        }
    }
}
