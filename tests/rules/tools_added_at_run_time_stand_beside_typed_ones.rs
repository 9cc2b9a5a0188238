use std::sync::Arc;

use agentkit::{
    agent::{Pending, ResumeSet as _},
    approval::{PendingKind, Verdict},
    call::Canonical,
    model::scripted::Reply,
    prelude::*,
    tool::{ApprovalRule, DynTool, Dynamic},
};
use serde_json::{Value, json};

use crate::desk::*;

fn plugin(name: &str) -> Arc<dyn DynTool> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = Dynamic::new(name, "A plugin.", schema, |arguments, cx| async move {
        let answer: Option<Value> = cx.resume()?;
        if arguments["n"] == 0 && answer.is_none() {
            return Ok(Flow::Suspend(json!("which?")));
        }
        cx.context::<Ledger>()?.add(format!("plugin {arguments}"));
        Ok(Flow::Done(answer.unwrap_or_default()))
    });
    let tool = tool.unwrap().approval(ApprovalRule::required());
    Arc::new(
        tool.question(json!({"type": "string"}), json!(true))
            .unwrap(),
    )
}

fn known_beforehand() -> Vec<Arc<dyn DynTool>> {
    vec![plugin("from_declaration")]
}

/// A desk with plugins.
#[agent(
    name = "plugged",
    model = "test/scripted",
    instructions = "You have plugins.",
    tools = [pay],
    dynamic_tools = known_beforehand(),
)]
pub struct Plugged;

/// A desk whose plugins come with the builder only.
#[agent(
    name = "bare",
    model = "test/scripted",
    instructions = "x",
    dynamic_tools
)]
pub struct Bare;

#[tokio::test]
async fn typed_calls_stay_typed_and_others_are_given_as_they_are() {
    let world = World::new();
    let model = calls(
        Reply::calls()
            .call("pay", &json!({"to": "bob", "cents": 5}))
            .call("from_declaration", &json!({"n": 1}))
            .call("from_builder", &json!({"n": 2})),
    );
    let builder = world.builder::<Plugged>(model).await;
    let desk = builder.tools([plugin("from_builder")]).build().unwrap();
    let waiting = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap());
    assert_eq!(waiting.pending.len(), 3);
    for pending in waiting.pending {
        let decision = match pending {
            PluggedPending::Pay(Pending::Approval(call)) => call.decline("no"),
            PluggedPending::Other(call) if call.tool == "from_builder" => {
                call.decision(Verdict::Approve)
            }
            PluggedPending::Other(call) => call.decision(Verdict::Cancel),
        };
        desk.decide(&fiona(), decision).await.unwrap();
    }
    finished(desk.resume_and_wait(&waiting.run).await.unwrap());
    assert_eq!(world.ledger.effects(), [r#"plugin {"n":2}"#]);
}

#[tokio::test]
async fn an_answer_to_such_a_tool_is_checked_by_its_schema() {
    let world = World::new();
    let model = calls(Reply::calls().call("ask", &json!({"n": 0})));
    let builder = world.builder::<Bare>(model).await;
    let desk = builder.tools([plugin("ask")]).build().unwrap();
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    desk.decide(&fiona(), approve(&the_one(&desk, &run).await))
        .await
        .unwrap();
    let waiting = suspended(desk.resume_and_wait(&run).await.unwrap());
    let [BarePending::Other(call)] = waiting.pending.as_slice() else {
        panic!("{:?}", waiting.pending)
    };
    assert_eq!(call.kind, PendingKind::Question);
    let answer = BareResume::decode_for(call, &json!("this")).unwrap();
    assert_eq!(answer.tool(), "ask");
    let data = answer.encode().unwrap();
    assert_eq!(data, Canonical::of(&json!("this")).unwrap());
    desk.decide(&alice(), call.decision(Verdict::Answer { data }))
        .await
        .unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(text, "Succeeded: \"this\"");
}
