//! Canonical JSON inside another JSON document: as a value, re-read strictly.

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de, ser};

use crate::call::Canonical;

pub(super) fn serialize<S: Serializer>(
    canonical: &Canonical,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    canonical
        .to_value()
        .map_err(ser::Error::custom)?
        .serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Canonical, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Canonical::of(&value).map_err(de::Error::custom)
}

/// As its text, since `null` is a value too.
pub(crate) mod optional {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de};

    use crate::call::Canonical;

    #[expect(clippy::ref_option, reason = "serde hands over the field")]
    pub(crate) fn serialize<S: Serializer>(
        canonical: &Option<Canonical>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        canonical
            .as_ref()
            .map(Canonical::as_str)
            .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Canonical>, D::Error> {
        Option::<String>::deserialize(deserializer)?
            .map(|text| Canonical::from_stored(text).map_err(de::Error::custom))
            .transpose()
    }
}
