use std::sync::Arc;

use agentkit::{
    agent::{AgentBuilder, AgentDefinition},
    approval::{PendingKind, Verdict},
    call::{CallState, Canonical},
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
    run::DecideError,
    tool::{ApprovalRule, Dynamic},
};
use serde_json::{Value, json};

use crate::{
    desk::*,
    team::{AnyCall, NoAnswer},
};

/// An agent with tools that are known at run time only.
struct Plugins;

fn moves() -> Dynamic {
    let schema = json!({
        "type": "object",
        "properties": {"what": {"type": "string"}, "by": {"type": "integer", "minimum": 1}},
        "required": ["what", "by"],
    });
    Dynamic::new(
        "move_it",
        "Moves something.",
        schema,
        |arguments, cx| async move {
            let ledger = cx.context::<Ledger>()?;
            ledger.add(format!("move {arguments}"));
            Ok(Flow::Done(json!("moved")))
        },
    )
    .unwrap()
    .approval(ApprovalRule::required())
}

/// Asks until it is told `"stop"`, and says what it was told last.
fn asks() -> Dynamic {
    let schema = json!({"type": "object", "properties": {}});
    Dynamic::new("ask_on", "Asks.", schema, |_, cx| async move {
        let ledger = cx.context::<Ledger>()?;
        let answer: Option<Value> = cx.resume()?;
        let Some(answer) = answer else {
            return Ok(Flow::Suspend(json!("first")));
        };
        ledger.add(format!("told {answer}"));
        match answer.get("more") {
            Some(_) => Ok(Flow::Suspend(json!("more"))),
            None => Ok(Flow::Done(answer)),
        }
    })
    .unwrap()
    .question(json!({"type": "string"}), json!(true))
    .unwrap()
}

impl Agent for Plugins {
    type Pending = AnyCall;
    type Resume = NoAnswer;

    fn definition() -> AgentDefinition {
        AgentDefinition::new("plugins", "test/scripted", "You have plugins.")
            .tool(Arc::new(moves()))
            .tool(Arc::new(asks()))
    }
}

async fn host(world: &World, model: ScriptedModel) -> Hosted<Plugins> {
    let builder: AgentBuilder<Plugins> = world.builder(model).await;
    builder.build().unwrap()
}

#[tokio::test]
async fn validation_gate_amendment_and_storage_are_the_same() {
    let world = World::new();
    let wrong = Reply::calls()
        .call("move_it", &json!({"what": "box"}))
        .call("move_it", &json!({"what": "box", "by": 0}))
        .call(
            "move_it",
            &json!({"what": "box", "by": 1, "approved": true}),
        )
        .call(
            "move_it",
            &json!({"by": 9_007_199_254_740_993_i64, "what": "box"}),
        );
    let desk = host(&world, calls(wrong)).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let states: Vec<_> = stored(&desk, &run)
        .await
        .iter()
        .map(|call| call.state)
        .collect();
    let [denied, waits] = [CallState::Denied, CallState::AwaitingApproval];
    assert_eq!(states, [denied, denied, denied, waits]);
    let call = the_one(&desk, &run).await;
    assert_eq!(
        call.arguments.as_str(),
        r#"{"by":9007199254740993,"what":"box"}"#
    );
    let amend = |value: Value| {
        let arguments = Canonical::of(&value).unwrap();
        about(
            &call,
            Verdict::Amend {
                arguments,
                reason: None,
            },
        )
    };
    let error = desk
        .decide(&fiona(), amend(json!({"what": 5, "by": 1})))
        .await
        .unwrap_err();
    assert!(matches!(error, DecideError::DoesNotFit(_)), "{error:?}");
    desk.decide(&fiona(), amend(json!({"what": "box", "by": 2})))
        .await
        .unwrap();
    // In another process, which has the tools anew.
    let desk = host(&world, echo()).await;
    let call = the_one(&desk, &run).await;
    desk.decide(&frank(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), [r#"move {"by":2,"what":"box"}"#]);
}

#[tokio::test]
async fn false_zero_empty_and_null_are_answers() {
    for answer in [
        json!(false),
        json!(0),
        json!(""),
        Value::Null,
        json!([]),
        json!({}),
    ] {
        let world = World::new();
        let desk = host(&world, calls(Reply::calls().call("ask_on", &json!({})))).await;
        let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
        let question = the_one(&desk, &run).await;
        let data = Canonical::of(&answer).unwrap();
        desk.decide(&alice(), about(&question, Verdict::Answer { data }))
            .await
            .unwrap();
        let text = finished(desk.resume_and_wait(&run).await.unwrap());
        assert_eq!(text, format!("Succeeded: {answer}"));
        assert_eq!(world.ledger.effects(), [format!("told {answer}")]);
    }
}

#[tokio::test]
async fn a_call_may_ask_several_times_and_each_answer_is_for_one_question() {
    let world = World::new();
    let desk = host(&world, calls(Reply::calls().call("ask_on", &json!({})))).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let mut last = None;
    for round in 0..4 {
        let question = the_one(&desk, &run).await;
        assert_eq!(question.kind, PendingKind::Question);
        let payload = question.payload.as_ref().unwrap().as_str();
        assert_eq!(payload, if round == 0 { "\"first\"" } else { "\"more\"" });
        let data = Canonical::of(&json!({"more": round})).unwrap();
        let answer = about(&question, Verdict::Answer { data });
        // An answer to the question before is none to this one.
        if let Some(last) = last.replace(answer.clone()) {
            let error = desk.decide(&alice(), last).await.unwrap_err();
            assert!(
                matches!(error, DecideError::FingerprintMismatch { .. }),
                "{error:?}"
            );
        }
        desk.decide(&alice(), answer).await.unwrap();
        suspended(desk.resume_and_wait(&run).await.unwrap());
    }
    let question = the_one(&desk, &run).await;
    let data = Canonical::of(&json!("enough")).unwrap();
    desk.decide(&alice(), about(&question, Verdict::Answer { data }))
        .await
        .unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(text, "Succeeded: \"enough\"");
    assert_eq!(world.ledger.effects().len(), 5);
}
