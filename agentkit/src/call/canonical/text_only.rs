//! Serializers that accept nothing but text: map keys, and numbers of arbitrary precision.

use serde::{Serialize, ser};

use super::{CanonicalError, CanonicalErrorKind, number, text::Writer};

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
pub(super) struct Key<'a>(pub(super) &'a mut Writer);

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
pub(super) struct NumberText<'a>(pub(super) &'a mut Writer);

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
