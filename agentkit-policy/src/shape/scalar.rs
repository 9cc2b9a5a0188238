//! The table of scalars: a row says what it reads, its Cedar type, and how a value is mapped.

use std::net::IpAddr;

use chrono::{DateTime, NaiveDate};
use serde_json::{Number, Value as Json};

use crate::cedar::Value;

/// Texts beyond this size, in bytes, refuse the call; they are never truncated.
pub(crate) const MAX_TEXT_BYTES: usize = 64 * 1024;

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Scalar {
    /// The JSON Schema `type` that it reads.
    pub(super) json: &'static str,
    /// The `format`s that it reads; a row without any reads all that no other row names.
    pub(super) formats: &'static [&'static str],
    /// Its Cedar type.
    pub(super) cedar: &'static str,
    /// Maps a value, or says what was expected and why this one will not do.
    pub(super) map: fn(&Json) -> Result<Value, String>,
}

/// Cedar's type of a JSON number that need not be whole.
const NUMBER: &str = "{\"floor\": Long, \"ceil\": Long, \"exact\"?: decimal}";

pub(super) static SCALARS: [Scalar; 7] = [
    Scalar {
        json: "boolean",
        formats: &[],
        cedar: "Bool",
        map: boolean,
    },
    Scalar {
        json: "integer",
        formats: &[],
        cedar: "Long",
        map: integer,
    },
    Scalar {
        json: "number",
        formats: &[],
        cedar: NUMBER,
        map: number,
    },
    Scalar {
        json: "string",
        formats: &["date-time", "date"],
        cedar: "datetime",
        map: datetime,
    },
    Scalar {
        json: "string",
        formats: &["decimal"],
        cedar: "decimal",
        map: decimal,
    },
    Scalar {
        json: "string",
        formats: &["ipv4", "ipv6", "ip"],
        cedar: "ipaddr",
        map: ip,
    },
    Scalar {
        json: "string",
        formats: &[],
        cedar: "String",
        map: text,
    },
];

/// The row for a `type` and a `format`.
pub(super) fn find(json: &str, format: Option<&str>) -> Option<&'static Scalar> {
    let of_type = || SCALARS.iter().filter(|row| row.json == json);
    format
        .and_then(|format| of_type().find(|row| row.formats.contains(&format)))
        .or_else(|| of_type().find(|row| row.formats.is_empty()))
}

/// Maps a text by the row of its format.
pub(crate) fn map_text(format: &str, text: &str) -> Result<Value, String> {
    let row = find("string", Some(format)).ok_or_else(|| format!("no row reads `{format}`"))?;
    (row.map)(&Json::from(text))
}

/// Refuses a text that is too long to be decided on.
pub(crate) fn string_fits(text: &str) -> Result<(), String> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!(
            "text of {} bytes is longer than the {MAX_TEXT_BYTES} that policies can see, shorten it",
            text.len()
        ));
    }
    Ok(())
}

fn boolean(value: &Json) -> Result<Value, String> {
    value
        .as_bool()
        .map(Value::bool)
        .ok_or_else(|| expected("true or false", value))
}

fn integer(value: &Json) -> Result<Value, String> {
    let Json::Number(number) = value else {
        return Err(expected("a whole number", value));
    };
    if let Some(long) = number.as_i64() {
        return Ok(Value::long(long));
    }
    // JSON Schema counts 3.0 among the integers; up to 2^53 a float holds it exactly.
    if let Some(long) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
        return Ok(Value::long(long));
    }
    if number.is_f64() {
        return Err(expected("a whole number", value));
    }
    Err(out_of_range(number))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the float is whole and at most 2^53"
)]
fn whole(float: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

fn number(value: &Json) -> Result<Value, String> {
    let Json::Number(number) = value else {
        return Err(expected("a number", value));
    };
    let (floor, ceil) = bounds(number).ok_or_else(|| out_of_range(number))?;
    let mut record = vec![("floor", Value::long(floor)), ("ceil", Value::long(ceil))];
    if let Some(exact) = exact_decimal(number) {
        record.push(("exact", Value::decimal(&exact)?));
    }
    Value::record(record)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the comparison before it bounds the float to the range of i64"
)]
fn bounds(number: &Number) -> Option<(i64, i64)> {
    // 2^63; a float of that size or more has no i64, the one just below has.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if let Some(long) = number.as_i64() {
        return Some((long, long));
    }
    let float = number.as_f64().filter(|_| number.is_f64())?;
    let (floor, ceil) = (float.floor(), float.ceil());
    (floor >= -LIMIT && ceil < LIMIT).then_some((floor as i64, ceil as i64))
}

/// The number as a Cedar decimal, if it has at most four fraction digits and is in range.
fn exact_decimal(number: &Number) -> Option<String> {
    let text = match (number.as_i64(), number.as_f64()) {
        (Some(long), _) => format!("{long}.0"),
        // Rust writes the shortest digits that read back as the same float, without exponent.
        (None, Some(0.0)) => "0.0".to_owned(),
        (None, Some(float)) => format!("{float:?}"),
        (None, None) => return None,
    };
    normal_decimal(&text)
}

/// `-?digits.digits` with one to four fraction digits within the range of Cedar's decimals.
fn normal_decimal(text: &str) -> Option<String> {
    const LIMIT: u128 = 9_223_372_036_854_775_807;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || whole.len() > 20 {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 4 {
        return None;
    }
    let units =
        whole.parse::<u128>().ok()? * 10_000 + format!("{fraction:0<4}").parse::<u128>().ok()?;
    if units > LIMIT + u128::from(negative) {
        return None;
    }
    let sign = if negative { "-" } else { "" };
    Some(format!("{sign}{}.{:04}", units / 10_000, units % 10_000))
}

fn decimal(value: &Json) -> Result<Value, String> {
    const WHAT: &str =
        "a decimal number as text with at most four fraction digits, such as \"12.50\"";
    let text = value.as_str().ok_or_else(|| expected(WHAT, value))?;
    let normal = normal_decimal(text).ok_or_else(|| expected(WHAT, value))?;
    Value::decimal(&normal)
}

fn ip(value: &Json) -> Result<Value, String> {
    const WHAT: &str = "an IP address";
    let text = value.as_str().ok_or_else(|| expected(WHAT, value))?;
    let address: IpAddr = text.parse().map_err(|_| expected(WHAT, value))?;
    // `::ffff:10.0.0.1` reaches the same host as `10.0.0.1`, so a range must catch both.
    let normal = match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => v6.segments().map(|part| format!("{part:x}")).join(":"),
    };
    Value::ip(&normal)
}

fn text(value: &Json) -> Result<Value, String> {
    let text = value.as_str().ok_or_else(|| expected("a text", value))?;
    string_fits(text)?;
    Ok(Value::text(text))
}

fn datetime(value: &Json) -> Result<Value, String> {
    const WHAT: &str = "a date and time as in RFC 3339 within the years 0 to 9999, such as \
                        \"2026-01-31T12:00:00Z\", or a date";
    let text = value.as_str().ok_or_else(|| expected(WHAT, value))?;
    let millis = match DateTime::parse_from_rfc3339(text) {
        Ok(time) => Some(time.timestamp_millis()),
        Err(_) => NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .ok()
            .filter(|_| text.len() == 10)
            .and_then(|date| date.and_hms_opt(0, 0, 0))
            .map(|time| time.and_utc().timestamp_millis()),
    };
    let normal = millis
        .and_then(datetime_text)
        .ok_or_else(|| expected(WHAT, value))?;
    Value::datetime(&normal)
}

/// `YYYY-MM-DDThh:mm:ss.mmmZ`, the one form in which times reach Cedar; none outside the years 0
/// to 9999.
pub(crate) fn datetime_text(millis: i64) -> Option<String> {
    use chrono::{Datelike as _, Timelike as _};
    let time = DateTime::from_timestamp_millis(millis)?;
    let year = time.year();
    if !(0..=9999).contains(&year) {
        return None;
    }
    // Every decision writes one; the formatting machinery takes ten times as long.
    let mut text = String::with_capacity(24);
    let mut part = |value: u32, digits: u32, after: char| {
        for place in (0..digits).rev() {
            let digit = value / 10_u32.pow(place) % 10;
            text.extend(char::from_digit(digit, 10));
        }
        text.push(after);
    };
    part(u32::try_from(year).ok()?, 4, '-');
    part(time.month(), 2, '-');
    part(time.day(), 2, 'T');
    part(time.hour(), 2, ':');
    part(time.minute(), 2, ':');
    part(time.second(), 2, '.');
    part(time.timestamp_subsec_millis(), 3, 'Z');
    Some(text)
}

fn out_of_range(number: &Number) -> String {
    format!(
        "`{number}` is outside of the range of 64-bit integers that policies can compare, \
         use a smaller number"
    )
}

/// "expected X, found Y", with the value cut to a readable length.
pub(super) fn expected(what: &str, found: &Json) -> String {
    let text = found.to_string();
    let shown: String = text.chars().take(80).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("expected {what}, found `{shown}{more}`")
}
