//! What a declaration says beside its function: conditions for approvals, limits, labels, facts.

use agentkit::{
    call::Canonical,
    tool,
    tool::{Tool, ToolSpec},
};
use serde_json::json;

/// A line of an order.
#[derive(Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Line {
    cents: u64,
    country: String,
}

fn is_large(args: &<by_function as Tool>::Args) -> bool {
    args.cents > 100
}

/// By a function.
#[tool(require_approval(when = is_large))]
fn by_function(cents: u64) -> u64 {
    cents
}

/// By a closure with a comparison that is no generic argument.
#[tool(require_approval(when = |args| args.cents < 100, why = "small", ttl = "30m", quorum = 2))]
fn by_closure(cents: u64) -> u64 {
    cents
}

/// By one that may fail.
#[tool(require_approval(when = |args| args.text.parse::<u8>().map(|n| n > 9)))]
fn by_fallible(text: String) -> String {
    text
}

/// By one that panics.
#[tool(require_approval(when = |args| args.list[0] > 9))]
fn by_panicking(list: Vec<u8>) -> usize {
    list.len()
}

fn demanded(spec: &ToolSpec, arguments: serde_json::Value) -> (bool, Option<String>) {
    let arguments = Canonical::of(&arguments).unwrap();
    let rule = spec.approval.for_call(&spec.name, &arguments);
    assert!(rule.when.is_none(), "the condition is decided");
    (rule.required, rule.why)
}

#[test]
fn case_26_a_condition_says_which_calls_need_approval() {
    let spec = by_function::spec();
    assert!(spec.approval.required && !spec.approval.is_unconditional());
    assert_eq!(demanded(&spec, json!({"cents": 101})), (true, None));
    assert_eq!(demanded(&spec, json!({"cents": 100})), (false, None));
    let spec = by_closure::spec();
    assert_eq!(
        demanded(&spec, json!({"cents": 99})),
        (true, Some("small".into()))
    );
    assert!(!demanded(&spec, json!({"cents": 100})).0);
    assert_eq!(
        (spec.approval.quorum, spec.approval.ttl.unwrap().as_secs()),
        (2, 1800)
    );
}

#[test]
fn case_26_a_condition_that_cannot_be_decided_means_approval() {
    let spec = by_fallible::spec();
    assert!(demanded(&spec, json!({"text": "10"})).0);
    assert!(!demanded(&spec, json!({"text": "9"})).0);
    let (required, why) = demanded(&spec, json!({"text": "many"}));
    assert!(required && why.unwrap().contains("could not be told"));
    let spec = by_panicking::spec();
    assert!(!demanded(&spec, json!({"list": [1]})).0);
    assert!(demanded(&spec, json!({"list": []})).0);
    // Nor one whose arguments are none any more.
    assert!(demanded(&spec, json!({"list": "x"})).0);
}

fn countries(args: &<order as Tool>::Args) -> Vec<String> {
    args.lines.iter().map(|line| line.country.clone()).collect()
}

/// Order things.
#[tool(
    timeout = "90s",
    labels = ["money", "goods"],
    facts(
        total_cents = |args| args.lines.iter().map(|line| line.cents).sum::<u64>(),
        countries = countries,
        first = |args| args.lines[0].country.clone(),
    ),
)]
fn order(lines: Vec<Line>) -> usize {
    lines.len()
}

#[test]
fn facts_follow_from_typed_arguments() {
    let spec = order::spec();
    assert_eq!(spec.timeout.unwrap().as_secs(), 90);
    assert_eq!(spec.labels.iter().collect::<Vec<_>>(), ["goods", "money"]);
    let [total, countries, first] = &spec.facts[..] else {
        panic!("{:?}", spec.facts)
    };
    assert_eq!(total.name(), "total_cents");
    assert_eq!(total.schema()["type"], json!("integer"));
    assert_eq!(countries.schema()["items"]["type"], json!("string"));
    let lines = json!({"lines": [{"cents": 5, "country": "DE"}, {"cents": 7, "country": "FR"}]});
    let lines = Canonical::of(&lines).unwrap();
    assert_eq!(total.derive("order", &lines).unwrap(), json!(12));
    assert_eq!(
        countries.derive("order", &lines).unwrap(),
        json!(["DE", "FR"])
    );
    assert_eq!(first.derive("order", &lines).unwrap(), json!("DE"));
    let none = Canonical::of(&json!({"lines": []})).unwrap();
    let error = first.derive("order", &none).unwrap_err().to_string();
    assert!(error.contains("`first` of `order`"), "{error}");
}

mod private_types {
    #![allow(private_interfaces)]

    #[derive(serde::Serialize, schemars::JsonSchema)]
    pub(super) struct Inner {
        pub(super) n: u8,
    }

    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub(super) struct Argument {
        n: u8,
    }

    /// Visible where its types are, and no further.
    #[agentkit::tool]
    pub(super) fn restricted(argument: Argument) -> Inner {
        Inner { n: argument.n }
    }
}

#[tokio::test]
async fn a_tool_may_be_as_private_as_its_types() {
    let raw = r#"{"argument":{"n":3}}"#;
    assert_eq!(
        crate::call::<private_types::restricted>(raw).await,
        json!({"n": 3})
    );
    assert_eq!(private_types::Inner { n: 1 }.n, 1);
}
