//! Every value that the mapper accepts is a request that Cedar accepts under the schema that the
//! same mapper wrote; every other value is denied with a reason.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

mod common;

use agentkit_policy::{
    Call, Decision, Facts, LoadError, Outcome, PolicyEngine, PolicySource, ToolDeclaration, User,
};
use common::Draw;
use proptest::prelude::*;
use serde_json::{Value, json};

const PERMIT: &str =
    "@id(\"all\") permit (principal, action in Action::\"all tools unattended\", resource);";

fn load(name: &str, schema: &Value, policies: &str) -> Result<PolicyEngine, LoadError> {
    PolicyEngine::load(
        vec![ToolDeclaration::new(name, schema.clone())],
        &[PolicySource::new(
            "p.cedar",
            format!("{PERMIT}\n{policies}"),
        )],
    )
}

fn decide(engine: &PolicyEngine, tool: &str, arguments: &Value) -> Decision {
    engine.current().decide(&Call {
        tool,
        arguments,
        user: &User::new("u"),
        agent: "a",
        run: "r",
        step: 0,
        now: 0,
        facts: Facts::default(),
    })
}

fn assert_denied_with_a_reason(decision: &Decision, arguments: &Value) {
    assert_eq!(decision.outcome, Outcome::Deny);
    let error = &decision.errors[0];
    // A fault that Cedar found after the mapping would name the question.
    assert_eq!(error.question, None, "{error} for {arguments}");
    assert!(error.message.starts_with("argument"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn every_accepted_value_is_a_valid_request(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut draw = Draw::new(bytes);
        let schema = draw.input_schema();
        let engine = load("t", &schema, "").unwrap_or_else(|error| panic!("{error}\n{schema:#}"));
        for _ in 0..4 {
            let value = draw.value(&schema, &schema, 0);
            let decision = decide(&engine, "t", &value);
            match decision.outcome {
                Outcome::Allow => prop_assert_eq!(decision.errors, []),
                // Of values that fit, only those with texts or numbers beyond the limits.
                _ => assert_denied_with_a_reason(&decision, &value),
            }
        }
        for _ in 0..4 {
            let value = draw.any(3);
            let decision = decide(&engine, "t", &value);
            if decision.outcome == Outcome::Allow {
                prop_assert_eq!(decision.errors, []);
            } else {
                assert_denied_with_a_reason(&decision, &value);
            }
        }
    }
}

/// Tool schemas as the world writes them; they are not part of the project.
fn worldly_schemas() -> Option<Vec<Value>> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/tool-schemas/schemas.jsonl"
    );
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("SKIPPED: {path} is absent, no schemas to convert");
        return None;
    };
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

#[test]
fn the_worlds_schemas_convert_with_every_argument_visible() {
    let Some(rows) = worldly_schemas() else {
        return;
    };
    let mut converted = 0;
    let mut arguments = 0;
    println!("{:<44} {:<10} arguments  by digest only", "tool", "");
    for row in &rows {
        let (name, schema) = (row["name"].as_str().unwrap(), &row["input_schema"]);
        match load(name, schema, "") {
            Ok(engine) => {
                converted += 1;
                let visible = assert_visible(name, schema);
                arguments += visible;
                // The schema says the input's type for each of the three questions.
                let digests = engine.current().schema_text().matches("sha256").count() / 3;
                println!("{name:<44} {:<10} {visible:>9}  {digests:>14}", "converts");
                for seed in 0..5_u8 {
                    let value = Draw::new(vec![seed; 3]).value(schema, schema, 0);
                    let decision = decide(&engine, name, &value);
                    assert_eq!(
                        decision.outcome,
                        Outcome::Allow,
                        "{decision:?}\n{value}\n{schema:#}"
                    );
                    assert_eq!(decision.errors, [], "{value}");
                }
            }
            Err(error) => {
                println!("{name:<44} {:<10} {error}", "refused");
                let finding = &error.findings()[0];
                assert!(finding.property().is_some() && finding.suggestion().is_some());
            }
        }
    }
    println!(
        "{converted} of {} schemas converted, {arguments} arguments visible",
        rows.len()
    );
    assert!(
        converted * 100 >= rows.len() * 98,
        "{converted} of {}",
        rows.len()
    );
}

/// A policy can read each argument: one that read what is not there would not load.
fn assert_visible(name: &str, schema: &Value) -> usize {
    let mut reads = Vec::new();
    collect_reads("context.input", schema, &mut reads);
    let policies: Vec<String> = reads
        .iter()
        .enumerate()
        .map(|(index, (guard, read))| {
            format!(
                "@id(\"{index}\") forbid (principal, action == Action::{name:?}, resource) \
                 when {{ {guard}{read} == {read} }};"
            )
        })
        .collect();
    load(name, schema, &policies.join("\n")).unwrap_or_else(|error| panic!("{name}: {error}"));
    reads.len()
}

/// Attribute paths of all properties that are reached without going through an array.
fn collect_reads(base: &str, schema: &Value, reads: &mut Vec<(String, String)>) {
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let guard = format!("{base} has {key:?} && ");
        let read = format!("{base}[{key:?}]");
        let mut inner = Vec::new();
        if property["type"] == "object" {
            collect_reads(&read, property, &mut inner);
        }
        reads.push((guard.clone(), read));
        reads.extend(inner.into_iter().map(|(g, r)| (format!("{guard}{g}"), r)));
    }
}

#[test]
fn arguments_appear_as_the_table_says() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "number"},
            "at": {"type": "string", "format": "date-time"},
            "price": {"type": "string", "format": "decimal"},
            "host": {"type": "string", "format": "ip"},
            "mode": {"enum": ["r", "rw"]},
            "note": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "maxItems": 2},
            "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
            "target": {"oneOf": [
                {"type": "object", "properties": {"type": {"const": "person"}, "name": {"type": "string"}}, "required": ["type", "name"]},
                {"type": "object", "properties": {"type": {"const": "nobody"}}, "required": ["type"]}
            ]},
            "outer": {"oneOf": [
                {"const": "None"},
                {"type": "object", "properties": {"Some": {"type": "integer"}}, "required": ["Some"], "additionalProperties": false}
            ]},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "blob": true,
            "nothing": true,
            "odd key": {"type": "string"}
        },
        "required": ["n", "at", "price", "host", "mode", "tags", "pair", "labels", "target", "outer", "either", "blob", "nothing", "odd key"]
    });
    let value = json!({
        "n": 2.5, "at": "2026-01-31T12:00:00+01:00", "price": "12.5", "host": "::ffff:10.1.2.3",
        "mode": "rw", "note": null, "tags": ["a", "b", "a"], "pair": ["x", 7],
        "labels": {"k": 3}, "target": {"type": "person", "name": "Ann"}, "outer": {"Some": 4},
        "either": 5, "blob": {"deep": [1]}, "nothing": null, "odd key": "odd"
    });
    let holds = [
        "context.input.n.floor == 2 && context.input.n.ceil == 3",
        "context.input.n has exact && context.input.n.exact == decimal(\"2.5\")",
        "context.input.at == datetime(\"2026-01-31T11:00:00Z\")",
        "context.input.price.greaterThan(decimal(\"12.4\"))",
        "context.input.host.isInRange(ip(\"10.0.0.0/8\"))",
        "context.input.mode == t__mode::\"rw\"",
        "context.input.tags.containsAll([\"a\", \"b\"]) && context.input.tags_count == 3",
        "context.input.pair[\"0\"] == \"x\" && context.input.pair[\"1\"] == 7",
        "context.input.labels.keys.contains(\"k\")",
        "context.input.labels.hasTag(\"k\") && context.input.labels.getTag(\"k\") == 3",
        "context.input.target.kind == t__target_kind::\"person\"",
        "context.input.target has person && context.input.target.person.name == \"Ann\"",
        "context.input.outer has Some && context.input.outer.Some == 4",
        "context.input.either has int && context.input.either.int == 5",
        "context.input.blob.present && context.input.blob.bytes == 12",
        "!context.input.nothing.present",
        "context.input[\"odd key\"] == \"odd\"",
    ];
    let fails = [
        "context.input has note",
        "context.input.either has str",
        "context.input.labels.hasTag(\"z\")",
    ];
    for (conditions, outcome) in [(&holds[..], Outcome::Deny), (&fails[..], Outcome::Allow)] {
        for condition in conditions {
            let forbid = format!(
                "@id(\"f\") forbid (principal, action == Action::\"t\", resource) when {{ {condition} }};"
            );
            let engine = load("t", &schema, &forbid).unwrap_or_else(|error| panic!("{error}"));
            let decision = decide(&engine, "t", &value);
            assert_eq!(decision.errors, [], "{condition}");
            assert_eq!(decision.outcome, outcome, "{condition}");
        }
    }
}

#[test]
fn what_cannot_be_mapped_is_refused_with_path_value_and_remedy() {
    let schema = json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "d": {"type": "string", "format": "date"}}
        }}},
        "required": ["items"]
    });
    let engine = load("t", &schema, "").unwrap();
    for (item, path) in [
        (json!({"n": u64::MAX}), "`items[1].n`"),
        (json!({"n": 1.5}), "`items[1].n`"),
        (json!({"n": "1"}), "`items[1].n`"),
        (json!({"s": "x".repeat(65_537)}), "`items[1].s`"),
        (json!({"d": "2026-02-30"}), "`items[1].d`"),
        (json!({"d": "10000-01-01"}), "`items[1].d`"),
        (json!({"unseen": 1}), "`items[1].unseen`"),
        (json!([]), "`items[1]`"),
    ] {
        let arguments = json!({"items": [{}, item]});
        let decision = decide(&engine, "t", &arguments);
        assert_denied_with_a_reason(&decision, &arguments);
        assert!(decision.errors[0].message.contains(path), "{decision:?}");
    }
    assert_denied_with_a_reason(&decide(&engine, "t", &json!({})), &json!({}));
    assert_denied_with_a_reason(&decide(&engine, "t", &json!(null)), &json!(null));
    let fits = json!({"items": [{"s": "x".repeat(65_536), "n": i64::MIN}]});
    assert_eq!(decide(&engine, "t", &fits).outcome, Outcome::Allow);
}

#[test]
fn recursive_schemas_and_arguments_as_deep_as_they_come_do_no_harm() {
    let schema = json!({
        "type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}, "any": true},
        "$defs": {"Tree": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Tree"}}, {"type": "integer"}]}}
    });
    let engine = load("t", &schema, "").unwrap();
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let decision = decide(&engine, "t", &json!({"tree": deep, "any": deep}));
    assert_eq!(decision.outcome, Outcome::Allow);
    let deeper = (0..5_000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    // The macro would copy the value, and recurse.
    let arguments = Value::Object([("any".to_owned(), deeper)].into_iter().collect());
    let decision = decide(&engine, "t", &arguments);
    assert_eq!(decision.outcome, Outcome::Deny);
    assert!(
        decision.errors[0].message.contains("deep"),
        "{:?}",
        decision.errors
    );
    stacker::grow(64 << 20, || drop(arguments));
}
