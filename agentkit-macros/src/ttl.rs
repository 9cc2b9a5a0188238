//! Durations as people write them: `30s`, `15m`, `24h`, `7d`.

use syn::LitStr;

use crate::{options::Entry, problems::Problems};

/// What a duration looks like.
pub(crate) const FORM: &str =
    "write a whole number and a unit, such as `30s`, `15m`, `24h` or `7d`";

/// The seconds in `text`; `None` if it is no duration, zero, or more than ten years.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    number
        .checked_mul(factor)
        .filter(|seconds| (1..=3_660 * 86_400).contains(seconds))
}

/// The value of an entry as a duration, in seconds.
pub(crate) fn of(entry: &Entry, example: &str, problems: &mut Problems) -> Option<u64> {
    let literal = entry.value::<LitStr>(&format!("\"{example}\""), problems)?;
    let seconds = seconds(&literal.value());
    if seconds.is_none() {
        let message = format!("`{}` is no duration", literal.value());
        problems.add(&literal, &message, FORM);
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        assert_eq!(seconds("30s"), Some(30));
        assert_eq!(seconds("24h"), Some(86_400));
        for text in [
            "",
            "soon",
            "24",
            "h",
            "0s",
            "-1h",
            "1.5h",
            "99999999999d",
            "1é",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
