//! From a shape to the text of its Cedar type.

use std::fmt::Write as _;

use super::{EnumShape, MapShape, RecordShape, Shape};

/// A text as a literal of Cedar's policy and schema languages.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Shape {
    /// The type of an attribute of this shape.
    pub(crate) fn cedar_type(&self) -> String {
        match self {
            Self::Scalar(scalar) => scalar.cedar.to_owned(),
            Self::Enum(of) => of.entity.clone(),
            Self::Map(map) => map.entity.clone(),
            Self::Record(record) => record.cedar_type(),
            Self::List(item) => {
                format!("{{\"items\": Set<{}>, \"count\": Long}}", item.cedar_type())
            }
            Self::Tuple(items) => {
                attributes(items.iter().enumerate().map(|(index, (shape, required))| {
                    (index.to_string(), *required, shape.cedar_type())
                }))
            }
            Self::Tagged(tagged) => attributes(
                std::iter::once(("kind".to_owned(), true, tagged.kind.entity.clone())).chain(
                    tagged.variants.iter().filter_map(|variant| {
                        let content = variant.content.as_ref()?;
                        Some((variant.attribute.clone(), false, content.cedar_type()))
                    }),
                ),
            ),
            Self::Untagged(alternatives) => attributes(
                alternatives
                    .iter()
                    .map(|(name, shape)| (name.clone(), false, shape.cedar_type())),
            ),
            Self::Maybe(inner) => attributes([("value".to_owned(), false, inner.cedar_type())]),
            Self::Opaque => OPAQUE.to_owned(),
        }
    }

    /// Appends the declarations of the entity types that this shape needs.
    pub(crate) fn declare(&self, out: &mut String) {
        match self {
            Self::Scalar(_) | Self::Opaque => {}
            Self::Enum(of) => of.declare(out),
            Self::Map(map) => map.declare(out),
            Self::List(shape) | Self::Maybe(shape) => shape.declare(out),
            Self::Tuple(items) => {
                for (shape, _) in items {
                    shape.declare(out);
                }
            }
            Self::Untagged(alternatives) => {
                for (_, shape) in alternatives {
                    shape.declare(out);
                }
            }
            Self::Record(record) => {
                for field in &record.fields {
                    field.shape.declare(out);
                }
                if let Some((_, map)) = &record.rest {
                    map.declare(out);
                }
            }
            Self::Tagged(tagged) => {
                tagged.kind.declare(out);
                for content in tagged.variants.iter().filter_map(|v| v.content.as_ref()) {
                    content.declare(out);
                }
            }
        }
    }
}

const OPAQUE: &str = "{\"present\": Bool, \"bytes\": Long, \"sha256\": String}";

impl RecordShape {
    fn cedar_type(&self) -> String {
        let fields = self.fields.iter().flat_map(|field| {
            let own = match (&field.count, &field.shape) {
                (Some(_), Shape::List(item)) => format!("Set<{}>", item.cedar_type()),
                (_, shape) => shape.cedar_type(),
            };
            let count = field
                .count
                .iter()
                .map(|name| (name.clone(), true, "Long".to_owned()));
            std::iter::once((field.key.clone(), field.required, own)).chain(count)
        });
        let rest = self
            .rest
            .iter()
            .map(|(name, map)| (name.clone(), true, map.entity.clone()));
        attributes(fields.chain(rest))
    }
}

impl EnumShape {
    fn declare(&self, out: &mut String) {
        let values: Vec<String> = self.values.iter().map(|value| quoted(value)).collect();
        let _ = writeln!(out, "entity {} enum [{}];", self.entity, values.join(", "));
    }
}

impl MapShape {
    fn declare(&self, out: &mut String) {
        self.value.declare(out);
        let _ = writeln!(
            out,
            "entity {} {{\"keys\": Set<String>}} tags {};",
            self.entity,
            self.value.cedar_type()
        );
    }
}

fn attributes(of: impl IntoIterator<Item = (String, bool, String)>) -> String {
    let mut out = String::from("{");
    for (index, (name, required, cedar_type)) in of.into_iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        let optional = if required { "" } else { "?" };
        let _ = write!(out, "{}{optional}: {cedar_type}", quoted(&name));
    }
    out.push('}');
    out
}
