use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// An amount in cents, so that sums are exact and shops can be compared. In JSON it is a decimal
/// number of dollars, as in the shop's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Money(pub(crate) i64);

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        let cents = (dollars * 100.0).round();
        if !(-1e12..=1e12).contains(&cents) {
            return Err(D::Error::custom("an amount beyond ten billion"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        Ok(Self(cents as i64))
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "amounts are small")]
        serializer.serialize_f64(self.0 as f64 / 100.0)
    }
}

impl std::ops::Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl std::ops::Sub for Money {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self(0), std::ops::Add::add)
    }
}

#[test]
fn amounts_survive_json() {
    for text in ["0.01", "536.65", "488.81", "-3.1", "100"] {
        let money: Money = serde_json::from_str(text).unwrap();
        let again = serde_json::to_string(&money).unwrap();
        assert_eq!(
            serde_json::from_str::<Money>(&again).unwrap(),
            money,
            "{text}"
        );
    }
    assert_eq!(
        serde_json::from_str::<Money>("536.65").unwrap(),
        Money(53_665)
    );
}
