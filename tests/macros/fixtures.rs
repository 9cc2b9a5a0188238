//! Crates that stand to agentkit as others do: under another name, through a facade, in an older
//! edition, under every lint, without the standard library.

use agentkit::{
    agent::Agent,
    tool::{Contexts, Flow, Tool},
};
use fixture_lints_2021::desk as desk_2021;
use fixture_lints_2024::desk as desk_2024;
use serde_json::json;

use crate::{call, call_with, context};

fn names<A: Agent>() -> Vec<String> {
    let tools = A::definition().tools;
    tools.iter().map(|tool| tool.spec().name.clone()).collect()
}

#[tokio::test]
async fn case_35_a_renamed_dependency_works() {
    use fixture_renamed::{Greeter, greet};
    let raw = r#"{"name":"Bo","loud":true}"#;
    assert_eq!(call::<greet>(raw).await, json!("ADA GREETS BO"));
    assert_eq!(names::<Greeter>(), ["greet"]);
}

#[tokio::test]
async fn case_35_a_facade_is_enough() {
    use fixture_through_facade::{Clerk, Stock, left, order};
    let mut contexts = Contexts::new();
    contexts.insert(Stock(10));
    let context = context(contexts, None);
    let done = call_with::<order>(r#"{"name":"x","count":3}"#, context.clone()).await;
    assert_eq!(done.unwrap(), Flow::Done(json!(7)));
    let done = call_with::<left>("{}", context).await;
    assert_eq!(done.unwrap(), Flow::Done(json!(10)));
    assert_eq!(names::<Clerk>(), ["order", "left"]);
    assert_eq!(order::spec().facts[0].name(), "doubled");
}

#[tokio::test]
async fn case_32_every_lint_is_clean_in_both_editions() {
    // That they compile is the test; clippy checks the same crates.
    assert_eq!(names::<desk_2024::Clerk>(), names::<desk_2021::Clerk>());
    let mut contexts = Contexts::new();
    contexts.insert(desk_2021::Shop { till: 5 });
    let done = call_with::<desk_2021::AddToTill>(r#"{"amount_cents":3}"#, context(contexts, None));
    assert_eq!(done.await.unwrap(), Flow::Done(json!(8)));
}

#[tokio::test]
async fn case_38_the_macros_add_no_error_to_a_crate_without_std() {
    use fixture_no_std::{Doubler, double};
    assert_eq!(call::<double>(r#"{"n":4}"#).await, json!(8));
    assert_eq!(names::<Doubler>(), ["double"]);
}
