//! Moments and durations as they are written in test files.

use chrono::DateTime;

/// A moment in microseconds since the epoch: RFC 3339, or `25h ago` in relation to `now`.
pub(crate) fn instant(text: &str, now: i64) -> Option<i64> {
    if let Some(before) = text.strip_suffix(" ago") {
        return now.checked_sub(span(before)?);
    }
    if let Some(after) = text.strip_prefix("in ") {
        return now.checked_add(span(after)?);
    }
    Some(DateTime::parse_from_rfc3339(text).ok()?.timestamp_micros())
}

/// A duration in microseconds, in Cedar's spelling with microseconds besides: `1d2h3m4s5ms6us`.
pub(crate) fn span(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 6] = [
        ("ms", 1_000),
        ("us", 1),
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("m", 60_000_000),
        ("s", 1_000_000),
    ];
    let mut rest = text;
    let mut total = 0_i64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at_checked(digits)?;
        let number: i64 = number.parse().ok()?;
        let (unit, size) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        total = total.checked_add(number.checked_mul(*size)?)?;
        rest = after.strip_prefix(unit)?;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_cedar_spells_them() {
        assert_eq!(span("24h"), Some(86_400_000_000));
        assert_eq!(span("1h1ms"), Some(3_600_001_000));
        assert_eq!(span("5m"), Some(300_000_000));
        for wrong in ["", "h", "5", "5x", "-1h", "99999999999999999999d"] {
            assert_eq!(span(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn moments_are_absolute_or_relative_to_now() {
        assert_eq!(instant("1970-01-01T00:00:01Z", 7), Some(1_000_000));
        assert_eq!(instant("1s ago", 3_000_000), Some(2_000_000));
        assert_eq!(instant("in 1s", 3_000_000), Some(4_000_000));
        assert_eq!(instant("yesterday", 0), None);
    }
}
