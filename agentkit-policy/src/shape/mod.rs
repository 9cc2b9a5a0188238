//! The one table that says how arguments appear to policies.
//!
//! A JSON Schema is read into a [`Shape`]; the shape writes the Cedar type *and* maps values, so
//! the two cannot drift apart. Scalars are rows of one table ([`scalar::SCALARS`]).

mod cedar_type;
mod names;
mod read;
mod scalar;
mod value;

pub(crate) use cedar_type::quoted;
pub(crate) use names::Names;
pub(crate) use read::input_shape;
pub(crate) use scalar::{datetime_text, map_text, string_fits};
pub(crate) use value::{Mapped, arguments_digest, hex, map_input};

use scalar::Scalar;

/// Raised whenever the mapping changes what policies see; part of every digest.
pub(crate) const MAPPING_VERSION: u32 = 1;

/// How one JSON value appears to policies.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A row of the table of scalars.
    Scalar(&'static Scalar),
    /// Texts from a closed list: an enumerated entity type, so that a typo does not load.
    Enum(EnumShape),
    /// An object with declared keys.
    Record(RecordShape),
    /// An object with free keys: an entity with tags.
    Map(Box<MapShape>),
    /// An array: a set, which forgets order and multiplicity, and a count.
    List(Box<Shape>),
    /// An array with a shape for each position.
    Tuple(Vec<(Shape, bool)>),
    /// An enum with a tag: `{ kind, a?, b? }`.
    Tagged(TaggedShape),
    /// An enum without a tag: one optional attribute for each alternative.
    Untagged(Vec<(String, Shape)>),
    /// A value that may be null where no attribute can be left out: `{ value? }`.
    Maybe(Box<Shape>),
    /// Any JSON: `{ present, bytes, sha256 }`.
    Opaque,
}

#[derive(Clone, Debug)]
pub(crate) struct EnumShape {
    /// Name of the enumerated entity type.
    pub(crate) entity: String,
    pub(crate) values: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RecordShape {
    pub(crate) fields: Vec<Field>,
    /// Where keys that are not declared go: name of the attribute, and the map.
    pub(crate) rest: Option<(String, Box<MapShape>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// Key in the JSON object and name of the attribute.
    pub(crate) key: String,
    pub(crate) shape: Shape,
    /// False if the key may be missing or null; the attribute is optional then.
    pub(crate) required: bool,
    /// For an array: name of the sibling attribute that holds its length (0 where it is absent).
    pub(crate) count: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct MapShape {
    /// Name of the entity type whose tags hold the values.
    pub(crate) entity: String,
    pub(crate) value: Shape,
}

#[derive(Clone, Debug)]
pub(crate) struct TaggedShape {
    pub(crate) tag: Tag,
    /// Enumerated entity type of the attribute `kind`.
    pub(crate) kind: EnumShape,
    pub(crate) variants: Vec<Variant>,
}

/// Where the name of the variant stands in the JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// `{"<key>": "variant", …}`
    Internal(String),
    /// `{"variant": …}` or `"variant"`
    External,
}

#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// Name in the JSON.
    pub(crate) name: String,
    /// Name of the attribute that holds its content.
    pub(crate) attribute: String,
    /// Its content, if it can have any.
    pub(crate) content: Option<Shape>,
}

impl Shape {
    /// True for a JSON number that need not be whole.
    pub(crate) fn is_float(&self) -> bool {
        matches!(self, Self::Scalar(scalar) if scalar.json == "number")
    }

    /// The parts of the shape under their names.
    pub(crate) fn children(&self) -> Vec<(&str, &Self)> {
        match self {
            Self::Scalar(_) | Self::Enum(_) | Self::Opaque => Vec::new(),
            Self::Record(record) => record
                .fields
                .iter()
                .map(|field| (field.key.as_str(), &field.shape))
                .chain(
                    record
                        .rest
                        .iter()
                        .map(|(name, map)| (name.as_str(), &map.value)),
                )
                .collect(),
            Self::Map(map) => vec![("{}", &map.value)],
            Self::List(shape) | Self::Maybe(shape) => vec![("[]", shape)],
            Self::Tuple(items) => items.iter().map(|(shape, _)| ("[]", shape)).collect(),
            Self::Untagged(alternatives) => alternatives
                .iter()
                .map(|(name, shape)| (name.as_str(), shape))
                .collect(),
            Self::Tagged(tagged) => tagged
                .variants
                .iter()
                .filter_map(|variant| Some((variant.name.as_str(), variant.content.as_ref()?)))
                .collect(),
        }
    }

    /// How many entities a policy may have to step through to reach everything in the value.
    pub(crate) fn level(&self) -> u32 {
        let own = match self {
            Self::Map(_) => 1,
            Self::Record(record) => u32::from(record.rest.is_some()),
            _ => 0,
        };
        let below = self.children().iter().map(|(_, shape)| shape.level()).max();
        own + below.unwrap_or(0)
    }

    /// The shape under a path of declared keys, and whether a value is always there.
    pub(crate) fn under(&self, keys: &[String]) -> Option<&Self> {
        let Some((first, rest)) = keys.split_first() else {
            return Some(self);
        };
        match self {
            Self::Record(record) => record
                .fields
                .iter()
                .find(|field| field.key == *first)?
                .shape
                .under(rest),
            Self::Maybe(inner) => inner.under(keys),
            _ => None,
        }
    }

    /// True for a JSON integer.
    pub(crate) fn is_integer(&self) -> bool {
        matches!(self, Self::Scalar(scalar) if scalar.json == "integer")
    }
}
