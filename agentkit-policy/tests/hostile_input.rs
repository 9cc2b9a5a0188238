//! Policy texts, schemas and arguments of any content: refused with a place and a remedy, or loaded
//! and decided soundly. The fuzz targets check the same properties for longer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

mod common;

use common::{Draw, properties};
use proptest::prelude::*;

/// Pieces out of which policies are made; most combinations are nonsense.
fn policy() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "@id(\"a\") ",
        "@id(\"b\") ",
        "@title(\"t\") ",
        "@mode(\"log_only\") ",
        "permit ",
        "forbid ",
        "(principal, action == Action::\"pay\", resource) ",
        "(principal, action == Action::\"pay with approval\", resource) ",
        "(principal in Role::\"a\", action == Action::\"approve pay\", resource) ",
        "(principal, action in Action::\"all tools\", resource) ",
        "(principal, action, resource) ",
        "when { context.input.cents < 5 } ",
        "when { context.input.cents * 2 > 5 } ",
        "when { context.input has to && context.input.to like \"*x*\" } ",
        "unless { context.approvals.count >= 2 } ",
        "when { principal == context.requester } ",
        "when { context.session.depth < 2 } ",
        "when { context.input.nope } ",
        "when { ",
        "} ",
        ";",
        ";\n",
        "// \u{e9}\n",
        "\"",
        "\\",
        "(",
        "true || ",
        "🦀",
        "\r\n",
    ]);
    let whole = prop::sample::select(vec![
        "@id(\"p\") permit (principal, action == Action::\"pay\", resource) when { context.input.cents < 5 };\n",
        "@id(\"q\") permit (principal, action == Action::\"pay with approval\", resource) when { context.approvals.count >= 2 };\n",
        "@id(\"r\") permit (principal, action == Action::\"approve pay\", resource);\n",
        "@id(\"s\") forbid (principal, action in Action::\"pay\", resource) when { context.input.cents + 1 > 5 };\n",
        "@id(\"t\") permit (principal, action in Action::\"read-only tools unattended\", resource);\n",
    ]);
    let some = prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
    (prop::collection::vec(whole, 0..5), some).prop_map(|(whole, some)| whole.concat() + &some)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn any_policy_text(text in prop_oneof![3 => policy(), 1 => any::<String>()]) {
        properties::policy_text(&text);
    }

    #[test]
    fn any_tool_schema(bytes in prop::collection::vec(any::<u8>(), 0..120), any in any::<bool>()) {
        let mut draw = Draw::new(bytes);
        let schema = if any { draw.any(3) } else { draw.input_schema() };
        properties::tool_schema(&schema.to_string());
    }

    #[test]
    fn any_tool_arguments(
        pairs in prop::collection::vec((
            prop::sample::select(vec![
                "n", "i", "b", "at", "price", "host", "mode", "note", "tags", "pair", "labels",
                "target", "either", "tree", "blob", "other",
            ]),
            prop_oneof![
                2 => prop::collection::vec(any::<u8>(), 0..30)
                    .prop_map(|bytes| Draw::new(bytes).any(3)),
                1 => prop::sample::select(vec!["evil", "r", "2026-01-01", "1.5", "10.0.0.1"])
                    .prop_map(serde_json::Value::from),
            ],
        ), 0..5)
    ) {
        let arguments: serde_json::Map<_, _> =
            pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        properties::tool_arguments(&serde_json::Value::Object(arguments).to_string());
    }
}

#[test]
fn arguments_that_are_no_objects() {
    for text in [
        "null",
        "[]",
        "\"evil\"",
        "1e400",
        "{\"note\": \"evil\"}",
        "{\"note\": [\"evil\"]}",
    ] {
        properties::tool_arguments(text);
    }
}
