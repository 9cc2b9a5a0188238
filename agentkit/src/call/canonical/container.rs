//! Arrays and objects that are still open.
//!
//! Members are written where they stand; only an object whose keys did not arrive in order is
//! put in order when it ends. Structs and maps that are in order already, the usual case after
//! the first pass, cost no second copy.

use std::cmp::Ordering;

use serde::{Serialize, ser};

use super::{
    CanonicalError,
    text::{Member, Writer, compare_keys, duplicate, unquote},
    text_only::{Key, NumberText},
};

pub(super) struct Array<'a> {
    writer: &'a mut Writer,
    len: usize,
    variant: Option<&'static str>,
}

impl<'a> Array<'a> {
    /// The elements of an array whose bracket is open; of the variant of an enum, if any.
    pub(super) fn new(writer: &'a mut Writer, variant: Option<&'static str>) -> Self {
        Self {
            writer,
            len: 0,
            variant,
        }
    }

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

pub(super) enum Shape {
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
    pub(super) fn open(writer: &'a mut Writer, shape: Shape) -> Result<Self, CanonicalError> {
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

    pub(super) fn number(writer: &'a mut Writer) -> Self {
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
