//! What functions return.

use std::fmt;

use agentkit::{
    tool,
    tool::{Contexts, Flow, Json, Never, Tool, ToolError},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{call, call_with, context};

/// Nothing.
#[tool]
fn nothing(a: i64) {
    let _ = a;
}

#[tokio::test]
async fn case_16_nothing_is_null() {
    assert_eq!(call::<nothing>(r#"{"a":1}"#).await, Value::Null);
}

#[derive(Debug, thiserror::Error)]
#[error("no such order")]
struct MyErr;

/// An error type that is no `Error`.
#[derive(Debug)]
struct TextOnly;

impl fmt::Display for TextOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text only")
    }
}

#[derive(Serialize, schemars::JsonSchema)]
pub struct Order {
    id: u8,
}

type Result<T> = std::result::Result<T, MyErr>;

/// Plainly fallible.
#[tool]
fn fallible(ok: bool) -> std::result::Result<Order, MyErr> {
    if ok { Ok(Order { id: 1 }) } else { Err(MyErr) }
}
/// Like `anyhow`.
#[tool]
fn boxed(ok: bool) -> std::result::Result<u8, Box<dyn std::error::Error + Send + Sync>> {
    if ok { Ok(2) } else { Err("boxed".into()) }
}
/// `anyhow` itself.
#[tool]
fn any(ok: bool) -> anyhow::Result<u8> {
    if ok {
        Ok(2)
    } else {
        Err(anyhow::anyhow!("inner").context("outer"))
    }
}
/// An alias.
#[tool]
fn aliased(ok: bool) -> Result<Order> {
    fallible(ok)
}
/// Text only.
#[tool]
fn text(ok: bool) -> std::result::Result<u8, TextOnly> {
    if ok { Ok(3) } else { Err(TextOnly) }
}
/// Its own error.
#[tool]
fn own(ok: bool) -> std::result::Result<u8, ToolError> {
    if ok {
        Ok(3)
    } else {
        Err(ToolError::with_source("own", MyErr))
    }
}
/// An option.
#[tool]
fn option(ok: bool) -> Option<u8> {
    ok.then_some(4)
}
/// JSON by name.
#[tool]
fn by_name() -> Json<Order> {
    Json(Order { id: 5 })
}
/// Opaque.
#[tool]
fn opaque() -> impl Serialize {
    vec![6]
}
/// Opaque and asynchronous and fallible.
#[tool]
async fn opaque_fallible(ok: bool) -> std::result::Result<impl Serialize, MyErr> {
    if ok { Ok(vec![6]) } else { Err(MyErr) }
}
/// Borrowed from an argument.
#[tool]
fn lent(name: &str) -> &str {
    name.trim()
}
/// Static.
#[tool]
fn constant_text() -> &'static str {
    "static"
}

async fn error<T: Tool>() -> String {
    let error = call_with::<T>(r#"{"ok":false}"#, context(Contexts::new(), None)).await;
    error.unwrap_err().message().to_owned()
}

#[tokio::test]
async fn case_17_what_comes_back_is_decided_by_its_type() {
    let ok = r#"{"ok":true}"#;
    assert_eq!(call::<fallible>(ok).await, json!({"id": 1}));
    assert_eq!(error::<fallible>().await, "no such order");
    assert_eq!(call::<boxed>(ok).await, json!(2));
    assert_eq!(error::<boxed>().await, "boxed");
    assert_eq!(call::<any>(ok).await, json!(2));
    assert_eq!(error::<any>().await, "outer");
    assert_eq!(call::<aliased>(ok).await, json!({"id": 1}));
    assert_eq!(error::<aliased>().await, "no such order");
    assert_eq!(error::<text>().await, "text only");
    assert_eq!(error::<own>().await, "own");
    assert_eq!(call::<option>(ok).await, json!(4));
    assert_eq!(call::<option>(r#"{"ok":false}"#).await, Value::Null);
    assert_eq!(call::<by_name>("").await, json!({"id": 5}));
    assert_eq!(call::<opaque>("").await, json!([6]));
    assert_eq!(call::<opaque_fallible>(ok).await, json!([6]));
    assert_eq!(error::<opaque_fallible>().await, "no such order");
    assert_eq!(call::<lent>(r#"{"name":" x "}"#).await, json!("x"));
    assert_eq!(call::<constant_text>("").await, json!("static"));
}

#[test]
fn case_17_output_schemas_are_those_of_the_value() {
    let id = |schema: Option<Value>| schema.unwrap()["properties"]["id"]["type"].clone();
    assert_eq!(id(fallible::spec().output_schema), json!("integer"));
    assert_eq!(id(aliased::spec().output_schema), json!("integer"));
    assert_eq!(id(by_name::spec().output_schema), json!("integer"));
    assert_eq!(id(asks::spec().output_schema), json!("integer"));
    assert_eq!(opaque::spec().output_schema, None);
    assert!(no_schema::spec().output_schema.is_none());
}

#[derive(Serialize)]
struct NoSchema;

/// Has no schema.
#[tool]
fn no_schema() -> NoSchema {
    NoSchema
}

#[derive(Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct AskCity {
    question: String,
}

#[derive(Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct City {
    city: String,
}

/// Asks, and may fail.
#[tool(suspend = AskCity, resume = City)]
async fn asks(
    location: Option<String>,
    #[resume] answer: Option<City>,
) -> Result<Flow<Order, AskCity>> {
    match location.or(answer.map(|answer| answer.city)) {
        Some(city) if city.is_empty() => Err(MyErr),
        Some(_) => Ok(Flow::Done(Order { id: 7 })),
        None => Ok(Flow::Suspend(AskCity {
            question: "Which city?".into(),
        })),
    }
}

/// A flow that never suspends.
#[tool]
fn never_asks() -> Flow<u8> {
    Flow::Done(8)
}

#[tokio::test]
async fn a_tool_asks_and_is_answered() {
    let asked = call_with::<asks>("{}", context(Contexts::new(), None))
        .await
        .unwrap();
    assert_eq!(asked, Flow::Suspend(json!({"question": "Which city?"})));
    let answer = Some(json!({"city": "Bonn"}));
    let done = call_with::<asks>("{}", context(Contexts::new(), answer))
        .await
        .unwrap();
    assert_eq!(done, Flow::Done(json!({"id": 7})));
    let raw = r#"{"location":""}"#;
    assert!(
        call_with::<asks>(raw, context(Contexts::new(), None))
            .await
            .is_err()
    );
    assert_eq!(call::<never_asks>("").await, json!(8));
    let spec = asks::spec();
    assert!(spec.suspend_schema.is_some() && spec.resume_schema.is_some());
    let _: Option<<never_asks as Tool>::Suspend> = None::<Never>;
}
