#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use std::{collections::BTreeMap, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;
use crate::call::{CallId, Canonical, Principal, RunId};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Args {
    order: String,
    #[serde(default)]
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    items: Vec<Item>,
    #[serde(default, alias = "col")]
    color: Color,
    #[serde(flatten)]
    more: More,
    #[serde(default)]
    shape: Option<Shape>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
enum Color {
    #[default]
    Red,
    Blue,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Item {
    sku: String,
    count: u8,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct More {
    #[serde(default)]
    level: i64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Shape {
    Circle { r: u32 },
    Square { side: u32 },
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Question {
    text: String,
}

struct Order;

impl Tool for Order {
    const NAME: &'static str = "order";
    type Args = Args;
    type Output = String;
    type Suspend = Question;
    type Resume = bool;

    fn spec() -> ToolSpec {
        let mut spec = ToolSpec::new(Self::NAME, "Orders.", private::input_schema::<Args>());
        spec.policy_schema = private::policy_schema::<Args>();
        spec
    }

    async fn run(args: Args, cx: ToolContext) -> Result<Flow<Value, Question>, ToolError> {
        match cx.resume::<bool>()? {
            None => Ok(Flow::Suspend(Question { text: args.order })),
            Some(yes) => Ok(Flow::Done(json!(yes))),
        }
    }
}

fn settle(raw: &str) -> Result<String, String> {
    erase::<Order>()
        .settle(raw)
        .map(|canonical| canonical.to_string())
        .map_err(|error| error.to_string())
}

fn context(resume: Option<Canonical>) -> ToolContext {
    let run = RunContext::new(
        RunId::new(),
        CallId::new(),
        "key",
        Principal::new("ada", "test"),
        Cancellation::new(),
    );
    ToolContext::new(run, Arc::new(Contexts::new()), resume)
}

#[test]
fn effective_arguments_are_the_typed_value_serialised_again() {
    assert_eq!(
        settle(r#"{"order":"o","col":"Blue","items":[{"count":2,"sku":"a"}]}"#).unwrap(),
        r#"{"color":"Blue","items":[{"count":2,"sku":"a"}],"level":0,"note":null,"order":"o","shape":null}"#
    );
    assert!(settle(r#"{"order":"o","note":null,"items":[]}"#).is_ok());
}

#[test]
fn unknown_keys_are_refused_at_every_depth() {
    for (raw, path) in [
        (r#"{"order":"o","ordre":"p"}"#, "$.ordre"),
        (r#"{"order":"o","approved":true}"#, "$.approved"),
        (r#"{"order":"o","x":null}"#, "$.x"),
        (
            r#"{"order":"o","items":[{"sku":"a","count":1,"z":0}]}"#,
            "$.items[0].z",
        ),
        (
            r#"{"order":"o","shape":{"kind":"Circle","r":1,"z":[]}}"#,
            "$.shape.z",
        ),
        (
            r#"{"order":"o","shape":{"kind":"Circle","r":1,"side":3}}"#,
            "$.shape.side",
        ),
    ] {
        let error = erase::<Order>().settle(raw).unwrap_err();
        assert_eq!(error.problems().len(), 1, "{error}");
        assert_eq!(error.problems()[0].path, path, "{error}");
        assert!(error.to_string().contains("unknown key"), "{error}");
    }
}

#[test]
fn errors_name_path_expectation_and_finding() {
    let text = settle(r#"{"order":"o","items":[{"sku":"a","count":1},{"sku":"b","count":300}]}"#);
    assert_eq!(
        text.unwrap_err(),
        "the arguments of `order` do not fit: `$.items[1].count`: expected u8, found integer `300`"
    );
    assert_eq!(
        settle("{}").unwrap_err(),
        "the arguments of `order` do not fit: `$.order`: required and missing"
    );
    assert_eq!(
        settle("[]").unwrap_err(),
        "the arguments of `order` do not fit: expected a JSON object, found an array"
    );
    assert_eq!(
        settle(r#"{"order":"o","order":"p"}"#).unwrap_err(),
        "the arguments of `order` do not fit: `$` has the key `order` twice; write it once"
    );
    let text = settle(r#"{"order":"o","shape":{"kind":"Oval"}}"#).unwrap_err();
    assert!(text.contains("`$.shape"), "{text}");
    assert!(text.contains("`Circle`"), "{text}");
}

#[test]
fn spellings_that_only_serde_takes_are_refused() {
    let text = settle(r#"{"order":"o","items":[["a",1]]}"#).unwrap_err();
    assert!(
        text.contains("`$.items[0]`: expected an object, found an array"),
        "{text}"
    );
    let text = settle(r#"{"order":"o","color":{"Blue":null}}"#).unwrap_err();
    assert!(
        text.contains("`$.color`: expected the string `Blue`"),
        "{text}"
    );
}

#[test]
fn a_type_that_changes_on_the_way_is_a_fault_of_the_tool() {
    #[derive(Serialize, Deserialize)]
    struct Grows {
        #[serde(serialize_with = "grow")]
        n: u8,
    }
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn grow<S: serde::Serializer>(n: &u8, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(n + 1)
    }
    let spec = ToolSpec::new("grows", "", json!({}));
    let error = settle::arguments::<Grows>(r#"{"n":1}"#, &spec).unwrap_err();
    assert!(error.to_string().contains("fault of the tool"), "{error}");
}

#[test]
fn values_that_a_type_drops_are_refused() {
    #[derive(Serialize, Deserialize)]
    #[allow(dead_code, reason = "only decoded")]
    struct Drops {
        #[serde(default, skip_serializing)]
        secret: String,
    }
    let spec = ToolSpec::new("drops", "", json!({}));
    let error = settle::arguments::<Drops>(r#"{"secret":"s"}"#, &spec).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`$.secret`: the tool's type drops"),
        "{error}"
    );
}

#[test]
fn schemas_are_closed_where_the_decoder_is() {
    let schema = private::input_schema::<Args>();
    assert_eq!(schema["additionalProperties"], json!(false), "{schema:#}");
    assert_eq!(
        schema["$defs"]["Item"]["additionalProperties"],
        json!(false)
    );
    let shape = &schema["$defs"]["Shape"];
    assert_eq!(
        shape["oneOf"][0]["additionalProperties"],
        json!(false),
        "{shape:#}"
    );
    assert_eq!(schema["required"], json!(["order"]));
    assert!(schema.get("title").is_none());
}

#[test]
fn a_flattened_enum_closes_the_whole_and_not_its_branches() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Whole {
        a: u8,
        #[serde(flatten)]
        shape: Shape,
    }
    let schema = private::input_schema::<Whole>();
    assert_eq!(schema["unevaluatedProperties"], json!(false), "{schema:#}");
    assert!(
        schema["oneOf"][0].get("additionalProperties").is_none(),
        "{schema:#}"
    );
}

#[test]
fn maps_keep_their_keys() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Free {
        map: BTreeMap<String, Value>,
    }
    let spec = ToolSpec::new("free", "", json!({}));
    let raw = r#"{"map":{"a":{"b":[1]},"c":null}}"#;
    assert_eq!(settle::arguments::<Free>(raw, &spec).unwrap().as_str(), raw);
}

#[test]
fn answers_are_checked_against_their_type() {
    let tool = erase::<Order>();
    assert_eq!(tool.check_answer(&json!(false)).unwrap().as_str(), "false");
    let error = tool.check_answer(&json!("yes")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the answer to the question of `order` does not fit: expected a boolean, found string \"yes\""
    );
    assert!(serde_json::from_str::<Never>("null").is_err());
}

#[tokio::test]
async fn a_question_and_its_answer() {
    let tool = erase::<Order>();
    let args = tool.settle(r#"{"order":"o"}"#).unwrap();
    let asked = tool.run(&args, context(None)).await.unwrap();
    assert_eq!(
        asked,
        Flow::Suspend(Canonical::of(&json!({"text": "o"})).unwrap())
    );
    let answer = tool.check_answer(&json!(false)).unwrap();
    let done = tool.run(&args, context(Some(answer))).await.unwrap();
    assert_eq!(done, Flow::Done(Canonical::of(&false).unwrap()));
}

#[test]
fn contexts_are_found_by_type() {
    let mut contexts = Contexts::new();
    contexts.insert(5_u8);
    contexts.insert(6_u8);
    let needed = [ContextType::of::<u8>(), ContextType::of::<String>()];
    assert_eq!(contexts.missing(&needed), ["alloc::string::String"]);
    let cx = ToolContext::new(context(None).run().clone(), Arc::new(contexts), None);
    assert_eq!(*cx.context::<u8>().unwrap(), 6);
    assert_eq!(cx.context::<RunContext>().unwrap().idempotency_key, "key");
    let error = cx.context::<String>().unwrap_err();
    assert!(
        error.message().contains("`alloc::string::String`"),
        "{error}"
    );
}

#[test]
fn a_tool_error_in_a_box_stays_what_it_was() {
    let boxed: Box<dyn std::error::Error + Send + Sync> =
        ToolError::with_source("out of stock", "row 7").into();
    let error = ToolError::from_error(boxed);
    assert_eq!(error.message(), "out of stock");
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "row 7"
    );
}

#[test]
fn a_set_has_each_name_once() {
    let set = ToolSet::new(vec![erase::<Order>()]).unwrap();
    assert!(set.get("order").is_some() && set.get("orders").is_none());
    let error = ToolSet::new(vec![erase::<Order>(), erase::<Order>()]).unwrap_err();
    assert_eq!(error.name(), "order");
}

#[test]
fn the_digest_changes_with_the_schema_and_not_with_the_text() {
    let spec = Order::spec();
    let mut other = spec.clone();
    other.description.push('!');
    assert_eq!(spec.schema_digest(), other.schema_digest());
    other.input_schema = json!({"type": "object"});
    assert_ne!(spec.schema_digest(), other.schema_digest());
}

#[tokio::test]
async fn cancellation_reaches_all_clones() {
    let cancellation = Cancellation::new();
    let clone = cancellation.clone();
    assert!(!clone.is_cancelled());
    cancellation.cancel();
    clone.cancelled().await;
    assert!(clone.is_cancelled());
}

#[cfg(feature = "dynamic")]
mod dynamic {
    use super::*;

    fn tool(schema: Value) -> Result<Dynamic, DynamicError> {
        Dynamic::new("search", "Searches.", schema, |args, _| async move {
            match args.get("q") {
                Some(q) => Ok(Flow::Done(q.clone())),
                None => Ok(Flow::Suspend(json!("what for?"))),
            }
        })
    }

    fn search() -> Dynamic {
        tool(json!({
            "type": "object",
            "properties": {
                "q": {"type": "string"},
                "page": {"type": "object", "properties": {"n": {"type": "integer"}}}
            }
        }))
        .unwrap()
    }

    #[test]
    fn arguments_are_checked_against_the_schema() {
        assert_eq!(
            search().settle(r#"{"q":"x"}"#).unwrap().as_str(),
            r#"{"q":"x"}"#
        );
        let error = search().settle(r#"{"q":1,"page":{"m":2}}"#).unwrap_err();
        let paths: Vec<_> = error
            .problems()
            .iter()
            .map(|problem| &*problem.path)
            .collect();
        assert!(
            paths.contains(&"$.q") && paths.contains(&"$.page.m"),
            "{error}"
        );
        assert!(search().settle(r#"{"q":"x","q":"y"}"#).is_err());
    }

    #[test]
    fn nothing_is_fetched() {
        let error = tool(json!({"type": "object", "$ref": "https://example.com/s.json"}));
        assert!(matches!(
            error,
            Err(DynamicError::Schema { which: "input", .. })
        ));
        assert!(
            Dynamic::new("bad name", "", json!({"type": "object"}), |_, _| async {
                Ok(Flow::Done(Value::Null))
            })
            .is_err()
        );
    }

    #[tokio::test]
    async fn a_question_that_was_not_declared_or_does_not_fit_is_an_error_of_the_tool() {
        let args = search().settle("").unwrap();
        let error = search().run(&args, context(None)).await.unwrap_err();
        assert!(error.message().contains("declares none"), "{error}");

        let other = search()
            .question(json!({"type": "object"}), json!({"type": "string"}))
            .unwrap();
        let error = other.run(&args, context(None)).await.unwrap_err();
        assert!(
            error.message().contains("the question of `search`"),
            "{error}"
        );
        assert!(other.check_answer(&json!("it")).is_ok());
        assert!(other.check_answer(&json!(1)).is_err());
    }
}
