//! Types of arguments, what stands for absent ones, and contexts.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{Arc, LazyLock},
};

use agentkit::{
    tool,
    tool::{Contexts, DynTool, Flow, RunContext, Tool, erase},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{call, call_with, context, properties, settle};

type MyAlias = Option<u8>;

/// Options by any name.
#[tool]
async fn optional(a: Option<i64>, b: ::core::option::Option<String>, c: MyAlias) -> String {
    format!("{a:?}{b:?}{c:?}")
}

#[tokio::test]
async fn case_04_optionality_is_a_matter_of_types() {
    assert_eq!(optional::spec().input_schema.get("required"), None);
    assert_eq!(call::<optional>("{}").await, json!("NoneNoneNone"));
    let all = r#"{"a":null,"b":"x","c":2}"#;
    assert_eq!(call::<optional>(all).await, json!("NoneSome(\"x\")Some(2)"));
}

/// Borrowed arguments.
#[tool]
async fn borrowed(name: &str, ids: &[u64], p: &Path, c: &Config) -> usize {
    tokio::task::yield_now().await;
    name.len() + ids.len() + p.as_os_str().len() + c.depth
}

#[derive(Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Config {
    depth: usize,
}

#[tokio::test]
async fn case_05_borrowed_arguments_are_owned_and_lent() {
    let raw = r#"{"name":"abc","ids":[1,2],"p":"/x","c":{"depth":10}}"#;
    assert_eq!(call::<borrowed>(raw).await, json!(17));
    let spawned = tokio::spawn(async { call::<borrowed>(raw).await });
    assert_eq!(spawned.await.unwrap(), json!(17));
}

/// A lifetime that only arguments have.
#[tool]
fn named<'a>(c: Cow<'a, str>, d: &'a str, e: Cow<'_, str>) -> String {
    format!("{c}{d}{e}")
}

#[tokio::test]
async fn case_09_named_lifetimes_in_arguments_are_owned() {
    assert_eq!(
        call::<named>(r#"{"c":"1","d":"2","e":"3"}"#).await,
        json!("123")
    );
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct More {
    extra: u8,
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
enum Kind {
    A,
}

/// Defaults and forwarded attributes.
#[tool]
fn forwarded(
    #[arg(default = 3)] n: u8,
    #[arg(default)] m: u8,
    #[arg(default = "EUR")] currency: String,
    #[arg(default = "de")] language: &str,
    #[arg(rename = "type")] kind: Kind,
    #[serde(flatten)] more: More,
    #[schemars(range(min = 1))] ranged: u8,
) -> String {
    let Kind::A = kind;
    format!("{n}{m}{currency}{language}{}{ranged}", more.extra)
}

#[tokio::test]
async fn case_30_attributes_of_arguments_are_forwarded() {
    let raw = r#"{"type":"A","extra":5,"ranged":1}"#;
    assert_eq!(call::<forwarded>(raw).await, json!("30EURde51"));
    let schema = forwarded::spec().input_schema;
    assert_eq!(schema["properties"]["n"]["default"], json!(3));
    assert_eq!(schema["properties"]["ranged"]["minimum"], json!(1));
    let mut required: Vec<_> = schema["required"].as_array().unwrap().clone();
    required.sort_by_key(ToString::to_string);
    assert_eq!(required, [json!("extra"), json!("ranged"), json!("type")]);
    assert!(settle::<forwarded>(r#"{"type":"A","extra":5,"ranged":1,"kind":"A"}"#).is_err());
}

struct Pool(u8);
#[derive(Clone)]
struct Settings(u8);
type SharedPool = Arc<Pool>;

/// Contexts everywhere.
#[tool]
async fn contexts(
    #[ctx] pool: &Pool,
    a: u8,
    #[ctx] again: SharedPool,
    #[ctx] settings: Settings,
    #[ctx] run: &RunContext,
) -> u8 {
    assert_eq!(run.requester.id, "ada");
    pool.0 + a + again.0 + settings.0
}

#[tokio::test]
async fn case_31_contexts_are_given_by_type_and_not_shown() {
    assert_eq!(properties::<contexts>(), ["a"]);
    let mut given = Contexts::new();
    let needed = contexts::spec().contexts;
    let missing = given.missing(&needed);
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert!(missing[0].ends_with("::Pool") && missing[2].ends_with("::Settings"));
    given.insert(Pool(10));
    given.insert(Settings(100));
    assert!(given.missing(&needed).is_empty());
    let done = call_with::<contexts>(r#"{"a":1}"#, context(given, None))
        .await
        .unwrap();
    assert_eq!(done, Flow::Done(json!(121)));
    let error = call_with::<contexts>(r#"{"a":1}"#, context(Contexts::new(), None)).await;
    assert!(error.unwrap_err().message().contains("::Pool"));
}

/// Sixteen arguments.
#[tool]
#[allow(clippy::too_many_arguments, clippy::many_single_char_names)]
fn many(
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
    f: u8,
    g: u8,
    h: u8,
    i: u8,
    j: u8,
    k: u8,
    l: u8,
    m: u8,
    n: u8,
    o: u8,
    p: u8,
) -> u8 {
    a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p
}

#[tokio::test]
async fn case_37_any_number_of_arguments_works() {
    let raw: serde_json::Map<_, _> = ('a'..='p')
        .map(|name| (name.to_string(), json!(1)))
        .collect();
    assert_eq!(
        call::<many>(&Value::Object(raw).to_string()).await,
        json!(16)
    );
}

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind")]
enum Shape {
    Circle { r: u32 },
    Square { side: u32 },
}

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Either {
    Text(String),
    Inner { deep: Vec<u8> },
}

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
enum Outer {
    Plain,
    New(u8),
    Pair(u8, String),
    Record { x: Option<bool> },
}

/// Every form of a type.
#[tool]
#[allow(clippy::too_many_arguments, clippy::implicit_hasher)]
fn forms(
    small: u8,
    signed: Option<i16>,
    #[arg(default)] float: f64,
    #[arg(default)] flag: bool,
    letter: Option<char>,
    list: Option<Vec<u8>>,
    map: Option<BTreeMap<String, u8>>,
    hash: Option<HashMap<String, bool>>,
    shape: Option<Shape>,
    either: Option<Either>,
    outer: Option<Outer>,
    pair: Option<(u8, bool)>,
) {
    let _ = (
        small, signed, float, flag, letter, list, map, hash, shape, either, outer, pair,
    );
}

static FORMS: LazyLock<(Arc<dyn DynTool>, jsonschema::Validator)> = LazyLock::new(|| {
    let validator = jsonschema::validator_for(&forms::spec().input_schema).unwrap();
    (erase::<forms>(), validator)
});

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-300..300_i64).prop_map(Value::from),
        Just(json!(1.5)),
        prop_oneof!["a", "ab", "Plain", "Circle", "Square", ""].prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let key = prop_oneof![
            Just("kind"),
            Just("r"),
            Just("side"),
            Just("deep"),
            Just("New"),
            Just("Pair"),
            Just("Record"),
            Just("x"),
            Just("Plain"),
            Just("z")
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key.prop_map(str::to_owned), inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Values that are likely to fit, so that acceptance is tested too.
fn likely() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({"shape": {"kind": "Circle", "r": 1}}),
        json!({"shape": {"kind": "Square", "side": 1, "r": 2}}),
        json!({"shape": {"kind": "Square", "side": 1, "z": null}}),
        json!({"either": "x"}),
        json!({"either": {"deep": [1, 2]}}),
        json!({"either": {"deep": [1, 256]}}),
        json!({"either": {"deep": [], "z": 1}}),
        json!({"outer": "Plain"}),
        json!({"outer": {"Plain": null}}),
        json!({"outer": {"New": 3}}),
        json!({"outer": {"Pair": [1, "x"]}}),
        json!({"outer": {"Pair": [1]}}),
        json!({"outer": {"Record": {}}}),
        json!({"outer": {"Record": {"x": true, "z": 1}}}),
        json!({"outer": {"Record": [true]}}),
        json!({"pair": [1, true]}),
        json!({"pair": [1, true, 2]}),
        json!({"letter": "a"}),
        json!({"letter": "ab"}),
        json!({"signed": 40000}),
        json!({"float": 3}),
        json!({"map": {"a": 1}, "hash": {"a": true}}),
        json!({"map": {"a": -1}}),
        json!({"z": 1}),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    /// The schema accepts exactly what the decoder accepts.
    #[test]
    fn schema_and_decoder_agree(
        small in prop_oneof![3 => Just(Some(json!(7))), 1 => Just(None), 1 => json_value().prop_map(Some)],
        fit in prop_oneof![Just(json!({})), likely()],
        key in prop::sample::select(vec![
            "signed", "float", "flag", "letter", "list", "map", "hash", "shape", "either", "outer",
            "pair", "stray",
        ]),
        value in prop::option::of(json_value()),
    ) {
        let mut args = fit;
        if let Some(small) = small {
            args["small"] = small;
        }
        if let Some(value) = value {
            args[key] = value;
        }
        let (tool, validator) = &*FORMS;
        let settled = tool.settle(&args.to_string());
        prop_assert_eq!(
            validator.is_valid(&args), settled.is_ok(),
            "{} {:?} {:?}", args, settled, validator.iter_errors(&args).next()
        );
    }
}
