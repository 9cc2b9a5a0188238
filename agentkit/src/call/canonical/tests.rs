#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "tests may"
)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn text<T: Serialize + ?Sized>(value: &T) -> String {
    Canonical::of(value).unwrap().to_string()
}

fn decode(text: &str) -> Result<Value, JsonError> {
    decode_value(text, Limits::default())
}

mod rfc_8785 {
    use super::*;

    /// RFC 8785, section 3.2.2 and 3.2.3.
    #[test]
    fn the_examples_of_the_rfc() {
        let input = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let expected = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,\
                        0.002,1e-27],\"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
        assert_eq!(text(&decode(input).unwrap()), expected);
    }

    /// RFC 8785, section 3.2.3: order of UTF-16 code units, not of code points.
    #[test]
    fn keys_are_ordered_by_utf_16_code_units() {
        let input = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let value = text(&decode(input).unwrap());
        let order = [
            "Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew",
        ];
        let places: Vec<_> = order.iter().map(|word| value.find(word).unwrap()).collect();
        assert!(places.is_sorted(), "{value}");
    }

    /// RFC 8785, appendix B, for the values below 2^53 and from 1e21 on.
    #[test]
    fn the_number_vectors_of_the_rfc() {
        for (bits, expected) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        ] {
            assert_eq!(text(&f64::from_bits(bits)), expected);
        }
    }
}

mod numbers {
    use super::*;

    #[test]
    fn integers_keep_their_digits() {
        for integer in [0, 1, 9_007_199_254_740_992, 9_007_199_254_740_993, u64::MAX] {
            assert_eq!(text(&integer), integer.to_string());
        }
        for integer in [i64::MIN, -1, i64::MAX] {
            assert_eq!(text(&integer), integer.to_string());
        }
    }

    #[test]
    fn a_large_float_never_has_the_text_of_an_integer() {
        assert_eq!(text(&9_007_199_254_740_992.0), "9.007199254740992e+15");
        assert_eq!(text(&-1e20), "-1e+20");
        assert_eq!(text(&9_007_199_254_740_991.0), "9007199254740991");
        assert_eq!(text(&1.0), text(&1));
    }

    #[test]
    fn what_json_cannot_express_is_refused() {
        for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Canonical::of(&json_like([float])).unwrap_err();
            assert_eq!(error.kind(), &CanonicalErrorKind::NotFinite);
            assert_eq!(error.path(), "$.a[0]");
        }
        assert!(Canonical::of(&(i128::from(u64::MAX) + 1)).is_err());
        assert!(Canonical::of(&(i128::from(i64::MIN) - 1)).is_err());
        assert!(Canonical::of(&u128::MAX).is_err());
    }

    fn json_like<T>(value: T) -> BTreeMap<&'static str, T> {
        BTreeMap::from([("a", value)])
    }

    #[test]
    fn integers_beyond_u64_are_refused_when_decoding() {
        let error = decode(r#"{"a":[18446744073709551616]}"#).unwrap_err();
        assert_eq!(
            error.kind(),
            &JsonErrorKind::NumberOutOfRange("18446744073709551616".into())
        );
        assert_eq!(error.path(), "$.a[0]");
        assert!(decode("1e400").is_err());
        assert_eq!(decode("18446744073709551615").unwrap(), json!(u64::MAX));
    }
}

mod strictness {
    use super::*;

    #[test]
    fn duplicate_keys_are_refused_at_every_depth() {
        let error = decode(r#"{"a":[{"b":1,"c":{"x":1,"\u0078":2}}]}"#).unwrap_err();
        assert_eq!(error.kind(), &JsonErrorKind::DuplicateKey("x".into()));
        assert_eq!(error.path(), "$.a[0].c");
    }

    #[test]
    fn duplicate_keys_from_a_flattened_map_are_refused() {
        #[derive(Serialize)]
        struct Flat {
            a: u8,
            #[serde(flatten)]
            more: BTreeMap<&'static str, u8>,
        }
        for keys in [vec!["a"], vec!["0", "a"], vec!["a", "z"]] {
            let more = keys.into_iter().map(|key| (key, 1)).collect();
            let error = Canonical::of(&Flat { a: 0, more }).unwrap_err();
            assert_eq!(error.kind(), &CanonicalErrorKind::DuplicateKey("a".into()));
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for wrong in [
            "",
            " ",
            "nul",
            "nulll",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "0x1",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "'a'",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\u{1}\"",
            "[1 2]",
            "1 2",
            "{\"a\" 1}",
            "\"\\ud800\"",
            "\"\\udc00\\ud800\"",
            "NaN",
            "Infinity",
            "[",
            "{",
            "\u{feff}1",
            "/**/1",
        ] {
            assert!(decode(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn depth_is_bounded_both_ways() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = decode(&nested(128)).unwrap();
        assert_eq!(text(&deepest), nested(128));
        let error = decode(&nested(129)).unwrap_err();
        assert_eq!(error.kind(), &JsonErrorKind::TooDeep { limit: 128 });
        // Hostile depth does not reach the stack.
        assert!(decode(&"[".repeat(1_000_000)).is_err());
        let error = Canonical::of(&json!([deepest])).unwrap_err();
        assert_eq!(error.kind(), &CanonicalErrorKind::TooDeep { limit: 128 });
    }

    #[test]
    fn size_is_bounded_both_ways() {
        let limits = Limits::new(8, 4);
        assert!(Canonical::of_within("123456", limits).is_ok());
        assert!(Canonical::of_within("1234567", limits).is_err());
        assert!(Canonical::of_within("\n\n\n\n", limits).is_err());
        assert!(Canonical::of_within(&[1, 2, 3, 4], limits).is_err());
        assert!(decode_value("\"1234567\"", limits).is_err());
    }

    #[test]
    fn keys_that_are_not_text_are_refused() {
        let error = Canonical::of(&BTreeMap::from([(vec![1], 1)])).unwrap_err();
        assert_eq!(error.kind(), &CanonicalErrorKind::KeyNotText);
        assert_eq!(
            text(&BTreeMap::from([(-1, 'a'), (10, 'b'), (9, 'c')])),
            r#"{"-1":"a","10":"b","9":"c"}"#
        );
    }

    #[test]
    fn a_stored_text_in_another_form_is_refused() {
        for wrong in [
            "{\"b\":1,\"a\":2}",
            "[1, 2]",
            "1.0",
            "\"\\u0041\"",
            "1e5",
            "-0",
            "nope",
        ] {
            assert!(Canonical::from_stored(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            Canonical::from_stored("{\"a\":1}").unwrap().as_str(),
            "{\"a\":1}"
        );
    }

    #[test]
    fn normal_forms_of_unicode_stay_different() {
        assert_ne!(text("\u{e9}"), text("e\u{301}"));
    }
}

#[test]
fn enums_have_the_shape_that_serde_json_gives_them() {
    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(u8),
        Tuple(u8, f32),
        Struct { z: u8, a: Option<()> },
    }
    for shape in [
        Shape::Unit,
        Shape::Newtype(1),
        Shape::Tuple(1, 0.5),
        Shape::Struct { z: 1, a: None },
    ] {
        assert_eq!(text(&shape), text(&serde_json::to_value(&shape).unwrap()));
    }
}

#[test]
fn errors_name_the_path_through_objects_that_stay_open() {
    #[derive(Serialize)]
    struct Outer {
        first: BTreeMap<&'static str, f64>,
        second: Inner,
    }
    #[derive(Serialize)]
    struct Inner {
        items: Vec<BTreeMap<&'static str, f64>>,
    }
    let value = Outer {
        first: BTreeMap::from([("a", 1.0)]),
        second: Inner {
            items: vec![BTreeMap::from([("fine", 1.0), ("wrong", f64::NAN)])],
        },
    };
    assert_eq!(
        Canonical::of(&value).unwrap_err().path(),
        "$.second.items[0].wrong"
    );
}

fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3_i64..3).prop_map(|offset| Value::from(9_007_199_254_740_992 + offset)),
        (-3.0..3.0_f64).prop_map(|offset| Value::from(9_007_199_254_740_992.0 + offset)),
        prop::num::f64::NORMAL.prop_map(Value::from),
        prop::num::f64::SUBNORMAL.prop_map(Value::from),
        (-20..20_i32).prop_map(|n| Value::from(f64::from(n) / 4.0)),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number(),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,4}|[a-c]|[\u{e000}-\u{10ffff}]", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Equality of JSON values as numbers mean it: an integer equals the float of the same value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    let integer = |number: &serde_json::Number| {
        number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
    };
    // A float is an integer's equal only where doubles are exact.
    let exact = |number: &serde_json::Number| {
        let float = number.as_f64().unwrap();
        #[allow(clippy::cast_possible_truncation, reason = "in range by the guard")]
        (float.abs() < 9_007_199_254_740_992.0 && float.fract() == 0.0).then_some(float as i128)
    };
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a == b,
        (Some(a), None) => exact(b) == Some(a),
        (None, Some(b)) => exact(a) == Some(b),
        (None, None) => a.as_f64() == b.as_f64(),
    }
}

proptest! {
    #[test]
    fn equal_texts_if_and_only_if_equal_values(a in any_json(), b in any_json()) {
        prop_assert_eq!(text(&a) == text(&b), same(&a, &b));
    }

    #[test]
    fn equal_texts_if_and_only_if_equal_numbers(a in any_number(), b in any_number()) {
        prop_assert_eq!(text(&a) == text(&b), same(&a, &b), "{} {}", a, b);
    }

    #[test]
    fn decoding_gives_the_value_back(value in any_json()) {
        let canonical = Canonical::of(&value).unwrap();
        prop_assert!(same(&canonical.to_value().unwrap(), &value));
        prop_assert!(same(&canonical.decode::<Value>().unwrap(), &value));
    }

    #[test]
    fn a_canonical_text_is_its_own_canonical_text(value in any_json()) {
        let once = Canonical::of(&value).unwrap();
        prop_assert_eq!(&Canonical::of(&once.to_value().unwrap()).unwrap(), &once);
        prop_assert_eq!(&Canonical::from_stored(once.as_str()).unwrap(), &once);
    }

    /// Two published implementations of RFC 8785 agree, for all that I-JSON can express.
    #[test]
    fn the_text_is_that_of_rfc_8785_within_i_json(value in any_json()) {
        prop_assume!(within_i_json(&value));
        prop_assert_eq!(&text(&value), &serde_jcs::to_string(&value).unwrap());
        prop_assert_eq!(&text(&value), &serde_json_canonicalizer::to_string(&value).unwrap());
    }

    #[test]
    fn the_decoder_agrees_with_serde_json(text in "[\\[\\]{}:,\"0-9eE.+a-c\\\\u -]{0,12}") {
        if let Ok(value) = decode(&text) {
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn the_decoder_accepts_what_serde_json_writes(value in any_json()) {
        prop_assert!(same(&decode(&value.to_string()).unwrap(), &value));
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert!(same(&decode(&pretty).unwrap(), &value));
    }
}

fn within_i_json(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().unwrap().abs();
            !(9_007_199_254_740_992.0..1e21).contains(&float)
        }
        Value::Array(items) => items.iter().all(within_i_json),
        Value::Object(members) => members.values().all(within_i_json),
        _ => true,
    }
}
