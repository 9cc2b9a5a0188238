//! A set of tools that is known at run time only, such as another program's, given to an agent
//! that is declared without it.

use std::sync::Arc;

use agentkit::{
    agent::{BuildError, DynamicTools},
    approval::{PendingKind, Verdict},
    call::{CallState, Canonical},
    model::scripted::{Reply, ScriptedModel},
    policy::PolicySource,
    prelude::*,
    tool::{DynTool, Dynamic, ToolSet},
};
use serde_json::{Value, json};

use crate::desk::*;

/// Its enum has no `Other`: calls of such tools are among the untyped ones.
impl DynamicTools for Desk {}

/// A tool that says what it did, from a description as another program would send it.
fn from_json(description: &Value) -> Arc<dyn DynTool> {
    let name = description["name"].as_str().unwrap().to_owned();
    let tool = Dynamic::new(
        name.clone(),
        description["description"].as_str().unwrap(),
        description["input"].clone(),
        move |arguments, cx| {
            let name = name.clone();
            async move {
                let answer: Option<Value> = cx.resume()?;
                if name == "ask_it" && answer.is_none() {
                    return Ok(Flow::Suspend(json!({"question": "which?"})));
                }
                cx.context::<Ledger>()?.add(format!("{name} {arguments}"));
                Ok(Flow::Done(answer.unwrap_or(json!("done"))))
            }
        },
    )
    .unwrap();
    match description.get("question") {
        None => Arc::new(tool),
        Some(question) => Arc::new(
            tool.question(question.clone(), json!({"type": "string"}))
                .unwrap(),
        ),
    }
}

fn plugins() -> ToolSet {
    let described = json!([
        {
            "name": "move_it",
            "description": "Moves something.",
            "input": {
                "type": "object",
                "properties": {"what": {"type": "string"}, "by": {"type": "integer"}},
                "required": ["what", "by"],
            },
        },
        {
            "name": "ask_it",
            "description": "Asks.",
            "input": {"type": "object", "properties": {}},
            "question": {
                "type": "object",
                "properties": {"question": {"type": "string"}},
                "required": ["question"],
            },
        },
    ]);
    let tools = described.as_array().unwrap().iter().map(from_json);
    ToolSet::new(tools.collect()).unwrap()
}

const POLICY: &str = r#"
    @id("small") permit (principal, action == Action::"move_it", resource)
        when { context.input.by <= 10 };
    @id("large") permit (principal, action == Action::"move_it with approval", resource)
        when { context.input.by <= 100 && context.approvals.count >= 1 };
    @id("ask") permit (principal, action == Action::"ask_it", resource);
    @id("approve") permit (principal in Role::"finance", action == Action::"approve move_it", resource);
    @id("mine") permit (principal, action == Action::"balance", resource);
"#;

async fn host(world: &World, model: ScriptedModel) -> Hosted<Desk> {
    world
        .builder::<Desk>(model)
        .await
        .tools(plugins())
        .policies(vec![PolicySource::new("plugins.cedar", POLICY)])
        .build()
        .unwrap()
}

#[tokio::test]
async fn by_the_policy_before_and_after_a_restart() {
    let world = World::new();
    let moves = |by: i64| json!({"what": "box", "by": by});
    let reply = Reply::calls()
        .call("move_it", &moves(5))
        .call("move_it", &moves(50))
        .call("move_it", &moves(500))
        .call("move_it", &json!({"what": "box", "by": "far"}))
        .call(
            "move_it",
            &json!({"what": "box", "by": 1, "approved": true}),
        )
        .call("ask_it", &json!({}))
        .call("balance", &json!({"of": "a"}));
    let desk = host(&world, calls(reply)).await;
    let outcome = desk.generate(Input::new(alice(), "go")).await.unwrap();
    let waits = suspended(outcome);
    let run = waits.run;
    let states: Vec<_> = stored(&desk, &run)
        .await
        .iter()
        .map(|call| call.state)
        .collect();
    assert_eq!(
        states,
        [
            CallState::Succeeded,
            CallState::AwaitingApproval,
            CallState::Denied,
            CallState::Denied,
            CallState::Denied,
            CallState::AwaitingInput,
            CallState::Succeeded,
        ]
    );
    // No type of the declaration fits, and neither is lost or taken for one that is gone.
    assert!(waits.pending.is_empty() && waits.unfit.is_empty());
    let [large, question] = waits.untyped.as_slice() else {
        panic!("{:?}", waits.untyped)
    };
    assert_eq!(large.policies, ["large"]);
    assert_eq!(question.kind, PendingKind::Question);
    assert_eq!(question.answer_schema, Some(json!({"type": "string"})));
    let mut effects = world.ledger.effects();
    effects.sort();
    assert_eq!(effects, ["balance a", r#"move_it {"by":5,"what":"box"}"#]);

    let desk = host(&world, echo()).await;
    let listed = desk.pending(&run).await.unwrap();
    assert_eq!(listed.untyped.len(), 2);
    assert!(desk.decide(&alice(), approve(large)).await.is_err());
    desk.decide(&fiona(), approve(large)).await.unwrap();
    let data = Canonical::of(&json!("this one")).unwrap();
    desk.decide(&alice(), about(question, Verdict::Answer { data }))
        .await
        .unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(text.contains("Succeeded: \"this one\""), "{text}");
    let mut effects = world.ledger.effects();
    effects.sort();
    assert_eq!(
        effects,
        [
            "ask_it {}",
            "balance a",
            r#"move_it {"by":5,"what":"box"}"#,
            r#"move_it {"by":50,"what":"box"}"#,
        ]
    );
}

#[tokio::test]
async fn a_process_without_them_knows_their_calls_for_gone() {
    let world = World::new();
    let reply = Reply::calls().call("move_it", &json!({"what": "box", "by": 50}));
    let desk = host(&world, calls(reply)).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&desk, &run).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let bare = world.host(echo()).await;
    let text = finished(bare.resume_and_wait(&run).await.unwrap());
    assert!(text.contains("no tool `move_it` any more"), "{text}");
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_when_the_agent_is_built() {
    let world = World::new();
    let pay = json!({"name": "pay", "description": "Mine.", "input": {"type": "object"}});
    let built = world
        .builder::<Desk>(echo())
        .await
        .tools([from_json(&pay)])
        .build();
    assert!(matches!(built, Err(BuildError::DuplicateTool { .. })));
}
