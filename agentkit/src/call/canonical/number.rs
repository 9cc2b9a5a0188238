//! Numbers in canonical form.

use serde_json::Number;

/// From here on neighbouring integers share a double: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Appends a finite float: ECMAScript's `Number::toString`, but always with an exponent where
/// the magnitude reaches 2^53. `false` for NaN and infinities, which have no text.
pub(super) fn write_float(out: &mut Vec<u8>, float: f64) -> bool {
    if !float.is_finite() {
        return false;
    }
    let mut buffer = ryu_js::Buffer::new();
    let text = buffer.format_finite(float);
    if float.abs() < EXACT || text.contains('e') {
        out.extend_from_slice(text.as_bytes());
        return true;
    }
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text), |digits| ("-", digits));
    let exponent = digits.len() - 1;
    let significant = digits.trim_end_matches('0');
    let (first, rest) = significant.split_at(1);
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(first.as_bytes());
    if !rest.is_empty() {
        out.push(b'.');
        out.extend_from_slice(rest.as_bytes());
    }
    out.extend_from_slice(b"e+");
    out.extend_from_slice(exponent.to_string().as_bytes());
    true
}

/// The number that a JSON number's text stands for: an integer where it is written as one,
/// otherwise the nearest double. `None` where it fits neither (an integer outside of `i64` and
/// `u64`, or a float that overflows).
pub(super) fn parse(text: &str) -> Option<Number> {
    if text
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit())
    {
        return match text.parse::<i64>() {
            // `-0` is zero in canonical form, whether it was written as an integer or not.
            Ok(integer) => Some(integer.into()),
            Err(_) => text.parse::<u64>().ok().map(Into::into),
        };
    }
    Number::from_f64(text.parse::<f64>().ok()?)
}
