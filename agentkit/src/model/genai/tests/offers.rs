//! What a provider is told of a tool: everything that its author wrote, in a form that the provider
//! takes.

use serde_json::{Value, json};

use super::{
    server::{Answer, Server},
    *,
};
use crate::{agent::AgentDefinition, tool::erase};

/// A size.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
enum Size {
    /// Fits into a letter box.
    Small,
    /// Needs two people.
    Large,
}

/// Where it goes.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Address {
    /// The town, without its postal code.
    town: String,
}

/// Send a parcel "today".
///
/// Not on Sundays.
#[crate::tool(crate = crate)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the type is the tool's argument"
)]
fn send_parcel(
    /// Where it goes to.
    to: Address,
    /// How large it is.
    size: Size,
    /// What it holds, if that is known.
    contents: Option<String>,
    /// How many.
    #[arg(default = 1)]
    count: u8,
) -> String {
    let (Size::Small | Size::Large) = size;
    let Address { town } = to;
    format!("{town} {contents:?} {count}")
}

/// Say what time it is.
#[crate::tool(crate = crate)]
fn clock() -> u64 {
    0
}

fn request() -> ModelRequest {
    let definition = AgentDefinition::new("a", "a/b", "")
        .tool(erase::<send_parcel>())
        .tool(erase::<clock>());
    let offers = definition.tools.iter().map(|tool| {
        let spec = tool.spec();
        ToolOffer {
            name: spec.name.clone(),
            description: spec.description.clone(),
            input_schema: spec.input_schema.clone(),
        }
    });
    hello().tools(offers.collect())
}

async fn sent(form: impl FnOnce(GenaiModel) -> GenaiModel) -> Vec<Value> {
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]});
    let server = Server::start([Answer::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n"))]).await;
    let model = form(model("openai/gpt-5-mini", &server));
    turn(&model, &request()).await.unwrap();
    let body = server.received().remove(0).body;
    body["tools"].as_array().unwrap().clone()
}

#[tokio::test]
async fn descriptions_reach_the_model_word_for_word() {
    let tools = sent(|model| model).await;
    let parcel = &tools[0]["function"];
    assert_eq!(parcel["name"], "send_parcel");
    assert_eq!(
        parcel["description"],
        "Send a parcel \"today\".\n\nNot on Sundays."
    );
    let parameters = &parcel["parameters"];
    let of = |name: &str| parameters["properties"][name]["description"].clone();
    assert_eq!(of("to"), "Where it goes to.");
    assert_eq!(of("contents"), "What it holds, if that is known.");
    let town = &parameters["$defs"]["Address"]["properties"]["town"];
    assert_eq!(town["description"], "The town, without its postal code.");
    let sizes = parameters["$defs"]["Size"].to_string();
    assert!(sizes.contains("Fits into a letter box."), "{sizes}");
    assert!(!parameters.to_string().contains("uint8"), "{parameters}");
    assert_eq!(parameters["additionalProperties"], false);
}

#[tokio::test]
async fn a_tool_without_arguments_has_an_empty_object() {
    let tools = sent(|model| model).await;
    let parameters = &tools[1]["function"]["parameters"];
    assert_eq!(
        parameters,
        &json!({"type": "object", "properties": {}, "additionalProperties": false})
    );
}

#[tokio::test]
async fn nested_types_are_inlined_where_that_is_asked_for() {
    let tools = sent(GenaiModel::inline_schemas).await;
    let parameters = &tools[0]["function"]["parameters"];
    assert!(!parameters.to_string().contains("$ref"), "{parameters}");
    let to = &parameters["properties"]["to"];
    assert_eq!(to["properties"]["town"]["type"], "string");
    assert_eq!(to["description"], "Where it goes to.");
}

#[tokio::test]
async fn strict_tools_keep_to_the_dialect_and_are_taken_by_the_tool() {
    let tools = sent(|model| model.inline_schemas().strict_tools()).await;
    let parcel = &tools[0]["function"];
    assert_eq!(parcel["strict"], true);
    let parameters = &parcel["parameters"];
    let mut required: Vec<_> = parameters["required"].as_array().unwrap().clone();
    required.sort_by_key(ToString::to_string);
    assert_eq!(required, ["contents", "count", "size", "to"]);
    assert_eq!(
        parameters["properties"]["to"]["additionalProperties"],
        false
    );
    // What the dialect makes a model write is what the tool takes.
    let written = r#"{"to":{"town":"Ulm"},"size":"Small","contents":null,"count":2}"#;
    let validator = jsonschema::validator_for(parameters).unwrap();
    assert!(validator.is_valid(&serde_json::from_str(written).unwrap()));
    assert!(erase::<send_parcel>().settle(written).is_ok());
}
