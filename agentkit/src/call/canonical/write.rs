//! The serializer that writes canonical text.

use serde::{Serialize, ser};

use super::{
    CanonicalError, CanonicalErrorKind, Limits,
    container::{Array, Object, Shape},
    text::Writer,
};

/// How `serde_json` passes numbers of arbitrary precision and raw text through serde.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";
const RAW_TOKEN: &str = "$serde_json::private::RawValue";

pub(super) fn canonical_text<T: Serialize + ?Sized>(
    value: &T,
    limits: Limits,
) -> Result<String, CanonicalError> {
    let mut writer = Writer::new(limits);
    value.serialize(&mut writer)?;
    String::from_utf8(writer.out)
        .map_err(|_| ser::Error::custom("a type wrote bytes that are not UTF-8"))
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
        Ok(Array::new(self, None))
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
        Ok(Array::new(self, Some(variant)))
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
