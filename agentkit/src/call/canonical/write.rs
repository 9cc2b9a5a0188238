//! The serializer that writes canonical text.
//!
//! Members are written where they stand; only an object whose keys did not arrive in order is
//! put in order when it ends. Structs and maps that are in order already, the usual case after
//! the first pass, cost no second copy.

use std::{cmp::Ordering, fmt};

use serde::{Serialize, ser};

use super::{Limits, number};

/// Why a value has no canonical text. Displays as one sentence with the path.
#[derive(Debug)]
pub struct CanonicalError {
    kind: CanonicalErrorKind,
    /// From the inside out.
    path: Vec<String>,
}

/// The kinds of [`CanonicalError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CanonicalErrorKind {
    /// More bytes than the limit.
    TooLarge {
        /// How many bytes are allowed.
        limit: usize,
    },
    /// More levels of nesting than the limit.
    TooDeep {
        /// How many levels are allowed.
        limit: usize,
    },
    /// NaN or an infinity.
    NotFinite,
    /// An integer outside of `i64` and `u64`.
    IntegerOutOfRange(String),
    /// A map key that is neither a string nor an integer, a boolean or a character.
    KeyNotText,
    /// The same key twice in one object, as a flattened map can bring about.
    DuplicateKey(String),
    /// JSON text that was to be taken over unread (`serde_json::value::RawValue`).
    RawText,
    /// An error of a type's own `Serialize`.
    Custom(String),
}

impl CanonicalError {
    fn new(kind: CanonicalErrorKind) -> Self {
        Self {
            kind,
            path: Vec::new(),
        }
    }

    fn within(mut self, step: String) -> Self {
        self.path.push(step);
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> &CanonicalErrorKind {
        &self.kind
    }

    /// Where, as a path such as `$.items[2].name`.
    pub fn path(&self) -> String {
        let mut path = String::from("$");
        path.extend(self.path.iter().rev().map(String::as_str));
        path
    }
}

impl fmt::Display for CanonicalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        match &self.kind {
            CanonicalErrorKind::TooLarge { limit } => {
                write!(
                    f,
                    "the value needs more than {limit} bytes of JSON at `{path}`"
                )
            }
            CanonicalErrorKind::TooDeep { limit } => {
                write!(f, "`{path}` is nested more than {limit} levels deep")
            }
            CanonicalErrorKind::NotFinite => {
                write!(f, "`{path}` is NaN or infinite, which JSON cannot express")
            }
            CanonicalErrorKind::IntegerOutOfRange(text) => {
                write!(
                    f,
                    "`{path}` is `{text}`, outside of i64 and u64; use a string"
                )
            }
            CanonicalErrorKind::KeyNotText => {
                write!(f, "a key of `{path}` is not text; use strings as keys")
            }
            CanonicalErrorKind::DuplicateKey(key) => {
                write!(f, "`{path}` has the key `{key}` twice")
            }
            CanonicalErrorKind::RawText => {
                write!(f, "`{path}` is raw JSON text; use `serde_json::Value`")
            }
            CanonicalErrorKind::Custom(text) => write!(f, "`{path}` cannot be serialised: {text}"),
        }
    }
}

impl std::error::Error for CanonicalError {}

impl ser::Error for CanonicalError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(CanonicalErrorKind::Custom(message.to_string()))
    }
}

/// How `serde_json` passes numbers of arbitrary precision and raw text through serde.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";
const RAW_TOKEN: &str = "$serde_json::private::RawValue";

pub(super) fn canonical_text<T: Serialize + ?Sized>(
    value: &T,
    limits: Limits,
) -> Result<String, CanonicalError> {
    let mut writer = Writer {
        out: Vec::with_capacity(128.min(limits.bytes)),
        members: Vec::new(),
        scratch: Vec::new(),
        depth: 0,
        limits,
    };
    value.serialize(&mut writer)?;
    String::from_utf8(writer.out)
        .map_err(|_| ser::Error::custom("a type wrote bytes that are not UTF-8"))
}

/// One member of an object that is still open, as positions in the text.
#[derive(Clone, Copy)]
struct Member {
    key: usize,
    colon: usize,
    end: usize,
}

struct Writer {
    out: Vec<u8>,
    /// The members of all open objects, innermost last.
    members: Vec<Member>,
    scratch: Vec<u8>,
    depth: usize,
    limits: Limits,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) -> Result<(), CanonicalError> {
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

    fn put_display(&mut self, number: impl Into<i128>) -> Result<(), CanonicalError> {
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

    fn put_unsigned(&mut self, mut number: u64) -> Result<(), CanonicalError> {
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

    fn put_float(&mut self, float: f64) -> Result<(), CanonicalError> {
        if !number::write_float(&mut self.out, float) {
            return Err(CanonicalError::new(CanonicalErrorKind::NotFinite));
        }
        if self.out.len() > self.limits.bytes {
            Err(self.too_large())
        } else {
            Ok(())
        }
    }

    fn put_string(&mut self, text: &str) -> Result<(), CanonicalError> {
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

    fn open(&mut self, bracket: &[u8]) -> Result<(), CanonicalError> {
        if self.depth >= self.limits.depth {
            let kind = CanonicalErrorKind::TooDeep {
                limit: self.limits.depth,
            };
            return Err(CanonicalError::new(kind));
        }
        self.depth += 1;
        self.put(bracket)
    }

    fn close(&mut self, bracket: &[u8]) -> Result<(), CanonicalError> {
        self.depth -= 1;
        self.put(bracket)
    }

    fn key_of(&self, member: Member) -> &[u8] {
        self.out.get(member.key..member.colon).unwrap_or_default()
    }

    /// Puts the members from `first` on in order. Text before `start` stays.
    fn sort(&mut self, start: usize, first: usize) -> Result<(), CanonicalError> {
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

fn duplicate(quoted: &[u8]) -> CanonicalError {
    CanonicalError::new(CanonicalErrorKind::DuplicateKey(unquote(quoted)))
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn unquote(quoted: &[u8]) -> String {
    serde_json::from_slice(quoted).unwrap_or_else(|_| String::from_utf8_lossy(quoted).into_owned())
}

/// Orders two keys, as written with quotes and escapes, by their UTF-16 code units.
fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
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

impl<'a> ser::Serializer for &'a mut Writer {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = Array<'a>;
    type SerializeTuple = Array<'a>;
    type SerializeTupleStruct = Array<'a>;
    type SerializeTupleVariant = Array<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Object<'a>;
    type SerializeStructVariant = Object<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), CanonicalError> {
        self.put(if value { b"true" } else { b"false" })
    }

    fn serialize_i8(self, value: i8) -> Result<(), CanonicalError> {
        self.put_display(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), CanonicalError> {
        self.put_display(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), CanonicalError> {
        self.put_display(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), CanonicalError> {
        self.put_display(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), CanonicalError> {
        self.put_display(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), CanonicalError> {
        self.put_unsigned(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), CanonicalError> {
        self.put_unsigned(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), CanonicalError> {
        self.put_unsigned(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), CanonicalError> {
        self.put_unsigned(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), CanonicalError> {
        match u64::try_from(value) {
            Ok(value) => self.put_unsigned(value),
            Err(_) => {
                let kind = CanonicalErrorKind::IntegerOutOfRange(value.to_string());
                Err(CanonicalError::new(kind))
            }
        }
    }

    fn serialize_f32(self, value: f32) -> Result<(), CanonicalError> {
        self.put_float(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), CanonicalError> {
        self.put_float(value)
    }

    fn serialize_char(self, value: char) -> Result<(), CanonicalError> {
        self.put_string(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), CanonicalError> {
        self.put_string(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), CanonicalError> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), CanonicalError> {
        self.put(b"null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), CanonicalError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), CanonicalError> {
        self.put(b"null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), CanonicalError> {
        self.put(b"null")
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), CanonicalError> {
        self.put_string(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        self.open(b"{")?;
        self.put_string(variant)?;
        self.put(b":")?;
        value
            .serialize(&mut *self)
            .map_err(|error| error.within(format!(".{variant}")))?;
        self.close(b"}")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Array<'a>, CanonicalError> {
        self.open(b"[")?;
        Ok(Array {
            writer: self,
            len: 0,
            variant: None,
        })
    }

    fn serialize_tuple(self, len: usize) -> Result<Array<'a>, CanonicalError> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        len: usize,
    ) -> Result<Array<'a>, CanonicalError> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Array<'a>, CanonicalError> {
        self.open(b"{")?;
        self.put_string(variant)?;
        self.put(b":")?;
        self.open(b"[")?;
        Ok(Array {
            writer: self,
            len: 0,
            variant: Some(variant),
        })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Object<'a>, CanonicalError> {
        Object::open(self, Shape::Plain)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Object<'a>, CanonicalError> {
        match name {
            NUMBER_TOKEN => Ok(Object::number(self)),
            RAW_TOKEN => Err(CanonicalError::new(CanonicalErrorKind::RawText)),
            _ => Object::open(self, Shape::Plain),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Object<'a>, CanonicalError> {
        self.open(b"{")?;
        self.put_string(variant)?;
        self.put(b":")?;
        Object::open(self, Shape::Variant(variant))
    }
}

pub(super) struct Array<'a> {
    writer: &'a mut Writer,
    len: usize,
    variant: Option<&'static str>,
}

impl Array<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        if self.len > 0 {
            self.writer.put(b",")?;
        }
        value.serialize(&mut *self.writer).map_err(|error| {
            let error = error.within(format!("[{}]", self.len));
            match self.variant {
                Some(variant) => error.within(format!(".{variant}")),
                None => error,
            }
        })?;
        self.len += 1;
        Ok(())
    }

    fn finish(self) -> Result<(), CanonicalError> {
        self.writer.close(b"]")?;
        if self.variant.is_some() {
            self.writer.close(b"}")
        } else {
            Ok(())
        }
    }
}

macro_rules! array {
    ($($trait:ident :: $method:ident),*) => {$(
        impl ser::$trait for Array<'_> {
            type Ok = ();
            type Error = CanonicalError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
                self.item(value)
            }

            fn end(self) -> Result<(), CanonicalError> {
                self.finish()
            }
        }
    )*};
}

array!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

enum Shape {
    Plain,
    Variant(&'static str),
    /// A number of arbitrary precision, which serde sees as a struct with one text.
    Number,
}

pub(super) struct Object<'a> {
    writer: &'a mut Writer,
    shape: Shape,
    /// Where the text of the members starts, and their place on the stack of members.
    start: usize,
    first: usize,
    latest: usize,
    sorted: bool,
}

impl<'a> Object<'a> {
    fn open(writer: &'a mut Writer, shape: Shape) -> Result<Self, CanonicalError> {
        writer.open(b"{")?;
        let (start, first) = (writer.out.len(), writer.members.len());
        Ok(Self {
            writer,
            shape,
            start,
            first,
            latest: first,
            sorted: true,
        })
    }

    fn number(writer: &'a mut Writer) -> Self {
        let (start, first) = (writer.out.len(), writer.members.len());
        Self {
            writer,
            shape: Shape::Number,
            start,
            first,
            latest: first,
            sorted: true,
        }
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CanonicalError> {
        if self.writer.members.len() > self.first {
            self.writer.put(b",")?;
        }
        let at = self.writer.out.len();
        key.serialize(Key(&mut *self.writer))?;
        let member = Member {
            key: at,
            colon: self.writer.out.len(),
            end: 0,
        };
        if self.sorted
            && let Some(last) = self.writer.members.get(self.first..).and_then(<[_]>::last)
        {
            match compare_keys(self.writer.key_of(*last), self.writer.key_of(member)) {
                Ordering::Less => {}
                Ordering::Equal => return Err(duplicate(self.writer.key_of(member))),
                Ordering::Greater => self.sorted = false,
            }
        }
        self.latest = self.writer.members.len();
        self.writer.members.push(member);
        self.writer.put(b":")
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        if let Err(error) = value.serialize(&mut *self.writer) {
            // Members of objects that the error left open may lie above this one.
            let member = self.writer.members.get(self.latest).copied();
            let key = member.map(|member| unquote(self.writer.key_of(member)));
            return Err(error.within(format!(".{}", key.unwrap_or_default())));
        }
        let end = self.writer.out.len();
        if let Some(member) = self.writer.members.last_mut() {
            member.end = end;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), CanonicalError> {
        if matches!(self.shape, Shape::Number) {
            return Ok(());
        }
        if self.sorted {
            self.writer.members.truncate(self.first);
        } else {
            self.writer.sort(self.start, self.first)?;
        }
        self.writer.close(b"}")?;
        if matches!(self.shape, Shape::Variant(_)) {
            self.writer.close(b"}")
        } else {
            Ok(())
        }
    }
}

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CanonicalError> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.value(value)
    }

    fn end(self) -> Result<(), CanonicalError> {
        self.finish()
    }
}

macro_rules! object {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Object<'_> {
            type Ok = ();
            type Error = CanonicalError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), CanonicalError> {
                match self.shape {
                    Shape::Number => value.serialize(NumberText(&mut *self.writer)),
                    Shape::Plain => self.key(key).and_then(|()| self.value(value)),
                    Shape::Variant(variant) => self
                        .key(key)
                        .and_then(|()| self.value(value))
                        .map_err(|error| error.within(format!(".{variant}"))),
                }
            }

            fn end(self) -> Result<(), CanonicalError> {
                self.finish()
            }
        }
    )*};
}

object!(SerializeStruct, SerializeStructVariant);

/// Refuses everything but what it is told to accept.
macro_rules! only_text {
    ($refusal:expr) => {
        type Ok = ();
        type Error = CanonicalError;
        type SerializeSeq = ser::Impossible<(), CanonicalError>;
        type SerializeTuple = ser::Impossible<(), CanonicalError>;
        type SerializeTupleStruct = ser::Impossible<(), CanonicalError>;
        type SerializeTupleVariant = ser::Impossible<(), CanonicalError>;
        type SerializeMap = ser::Impossible<(), CanonicalError>;
        type SerializeStruct = ser::Impossible<(), CanonicalError>;
        type SerializeStructVariant = ser::Impossible<(), CanonicalError>;

        fn serialize_f32(self, _: f32) -> Result<(), CanonicalError> {
            Err($refusal)
        }
        fn serialize_f64(self, _: f64) -> Result<(), CanonicalError> {
            Err($refusal)
        }
        fn serialize_bytes(self, _: &[u8]) -> Result<(), CanonicalError> {
            Err($refusal)
        }
        fn serialize_none(self) -> Result<(), CanonicalError> {
            Err($refusal)
        }
        fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), CanonicalError> {
            value.serialize(self)
        }
        fn serialize_unit(self) -> Result<(), CanonicalError> {
            Err($refusal)
        }
        fn serialize_unit_struct(self, _: &'static str) -> Result<(), CanonicalError> {
            Err($refusal)
        }
        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            value: &T,
        ) -> Result<(), CanonicalError> {
            value.serialize(self)
        }
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<(), CanonicalError> {
            Err($refusal)
        }
        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, CanonicalError> {
            Err($refusal)
        }
        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, CanonicalError> {
            Err($refusal)
        }
        fn serialize_tuple_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleStruct, CanonicalError> {
            Err($refusal)
        }
        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, CanonicalError> {
            Err($refusal)
        }
        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, CanonicalError> {
            Err($refusal)
        }
        fn serialize_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStruct, CanonicalError> {
            Err($refusal)
        }
        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, CanonicalError> {
            Err($refusal)
        }
    };
}

/// A map key: what `serde_json` accepts, without floats.
struct Key<'a>(&'a mut Writer);

impl Key<'_> {
    fn quoted(
        self,
        write: impl FnOnce(&mut Writer) -> Result<(), CanonicalError>,
    ) -> Result<(), CanonicalError> {
        self.0.put(b"\"")?;
        write(self.0)?;
        self.0.put(b"\"")
    }
}

macro_rules! integer_keys {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<(), CanonicalError> {
            self.quoted(|writer| writer.put_display(value))
        }
    )*};
}

impl ser::Serializer for Key<'_> {
    only_text!(CanonicalError::new(CanonicalErrorKind::KeyNotText));

    integer_keys!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64
    );

    fn serialize_u128(self, value: u128) -> Result<(), CanonicalError> {
        self.quoted(|writer| ser::Serializer::serialize_u128(writer, value))
    }

    fn serialize_bool(self, value: bool) -> Result<(), CanonicalError> {
        self.0.put_string(if value { "true" } else { "false" })
    }

    fn serialize_char(self, value: char) -> Result<(), CanonicalError> {
        self.0.put_string(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), CanonicalError> {
        self.0.put_string(value)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), CanonicalError> {
        self.0.put_string(variant)
    }
}

/// The text inside a number of arbitrary precision.
struct NumberText<'a>(&'a mut Writer);

fn not_a_number() -> CanonicalError {
    ser::Error::custom("a number without digits")
}

macro_rules! no_numbers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, _: $type) -> Result<(), CanonicalError> {
            Err(not_a_number())
        }
    )*};
}

impl ser::Serializer for NumberText<'_> {
    only_text!(not_a_number());

    no_numbers!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_char: char
    );

    fn serialize_str(self, text: &str) -> Result<(), CanonicalError> {
        let out_of_range =
            || CanonicalError::new(CanonicalErrorKind::IntegerOutOfRange(text.to_owned()));
        let number = number::parse(text).ok_or_else(out_of_range)?;
        if let Some(integer) = number.as_u64() {
            self.0.put_unsigned(integer)
        } else if let Some(integer) = number.as_i64() {
            self.0.put_display(integer)
        } else {
            self.0.put_float(number.as_f64().ok_or_else(out_of_range)?)
        }
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<(), CanonicalError> {
        Err(not_a_number())
    }
}
