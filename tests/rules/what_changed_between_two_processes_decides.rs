//! What becomes of calls that wait when the second process is not the first one's twin: each of
//! tool, schemas, policy and agent changed alone.

use std::sync::Arc;

use agentkit::{
    agent::{AgentBuilder, AgentDefinition, DynamicTools},
    approval::{PendingCall, Verdict},
    call::{CallState, Canonical, RunId},
    model::scripted::{Reply, ScriptedModel},
    policy::PolicySource,
    prelude::*,
    tool::{ApprovalRule, DynTool, Dynamic, erase},
};
use serde_json::{Value, json};

use crate::{
    desk::*,
    team::{AnyCall, NoAnswer},
};

/// The agent of the first process; `CHANGED` says what the second process's is like.
struct Version<const CHANGED: u8>;

const SAME: u8 = 0;
const INSTRUCTIONS: u8 = 1;
const MODEL: u8 = 2;
const ONE_TOOL_MORE: u8 = 3;

impl<const CHANGED: u8> DynamicTools for Version<CHANGED> {}

impl<const CHANGED: u8> Agent for Version<CHANGED> {
    type Pending = AnyCall;
    type Resume = NoAnswer;

    fn definition() -> AgentDefinition {
        let text = match CHANGED {
            INSTRUCTIONS => "You are an agent of the next version.",
            _ => "You are an agent.",
        };
        let model = match CHANGED {
            MODEL => "test/other",
            _ => "test/scripted",
        };
        let definition = AgentDefinition::new("agent", model, text);
        match CHANGED {
            ONE_TOOL_MORE => definition.tool(erase::<balance>()),
            _ => definition,
        }
    }
}

/// How the tools are described to a process.
#[derive(Clone)]
struct Tools {
    input: Value,
    question: Value,
    answer: Value,
    description: &'static str,
    gone: bool,
}

fn tools() -> Tools {
    Tools {
        input: json!({
            "type": "object",
            "properties": {"what": {"type": "string"}},
            "required": ["what"],
        }),
        question: json!({"type": "string"}),
        answer: json!({"type": "string"}),
        description: "Does it.",
        gone: false,
    }
}

impl Tools {
    fn made(&self) -> Vec<Arc<dyn DynTool>> {
        let does = Dynamic::new(
            "does",
            self.description,
            self.input.clone(),
            |arguments, cx| async move {
                cx.context::<Ledger>()?.add(format!("does {arguments}"));
                Ok(Flow::Done(json!("done")))
            },
        );
        let asks = Dynamic::new(
            "asks",
            self.description,
            json!({"type": "object", "properties": {}}),
            |_, cx| async move {
                let Some(answer) = cx.resume::<Value>()? else {
                    return Ok(Flow::Suspend(json!("what?")));
                };
                cx.context::<Ledger>()?.add(format!("told {answer}"));
                Ok(Flow::Done(answer))
            },
        );
        if self.gone {
            return vec![erase::<balance>()];
        }
        let asks = asks
            .unwrap()
            .question(self.question.clone(), self.answer.clone());
        vec![
            Arc::new(does.unwrap().approval(ApprovalRule::required())),
            Arc::new(asks.unwrap()),
        ]
    }
}

const POLICY: &str = r#"
    @id("does") permit (principal, action == Action::"does with approval", resource)
        when { context.approvals.count >= 1 };
    @id("approve") permit (principal, action == Action::"approve does", resource);
    @id("asks") permit (principal, action == Action::"asks", resource);
"#;

async fn host<const CHANGED: u8>(
    world: &World,
    model: ScriptedModel,
    tools: &Tools,
    policy: &str,
) -> Hosted<Version<CHANGED>> {
    let builder: AgentBuilder<Version<CHANGED>> = world.builder(model).await;
    builder
        .tools(tools.made())
        .policies(vec![PolicySource::new("test.cedar", policy)])
        .build()
        .unwrap()
}

/// A run of the first process with an approved call and an answered question, or with both
/// waiting.
async fn first(world: &World, decided: bool) -> (RunId, Vec<PendingCall>) {
    let reply = Reply::calls()
        .call("does", &json!({"what": "it"}))
        .call("asks", &json!({}));
    let desk = host::<SAME>(world, calls(reply), &tools(), POLICY).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let waiting = waiting(&desk, &run).await;
    if decided {
        decide(&desk, &waiting).await;
    }
    (run, waiting)
}

async fn decide<A: Agent>(desk: &Hosted<A>, waiting: &[PendingCall]) {
    let data = Canonical::of(&json!("that")).unwrap();
    let answer = about(&waiting[1], Verdict::Answer { data });
    desk.decide(&fiona(), approve(&waiting[0])).await.unwrap();
    desk.decide(&alice(), answer).await.unwrap();
}

const BOTH_RAN: [&str; 2] = [r#"does {"what":"it"}"#, r#"told "that""#];

fn effects(world: &World) -> Vec<String> {
    let mut effects = world.ledger.effects();
    effects.sort();
    effects
}

#[tokio::test]
async fn what_is_no_ground_of_an_approval_changes_nothing() {
    let mut reworded = tools();
    reworded.description = "Does it, in other words.";
    let elsewhere = format!(
        "{POLICY} @id(\"more\") permit (principal, action == Action::\"approve asks\", resource);"
    );
    for (tools, policy) in [(tools(), POLICY), (reworded, POLICY), (tools(), &elsewhere)] {
        let world = World::new();
        let (run, _) = first(&world, true).await;
        let desk = host::<SAME>(&world, echo(), &tools, policy).await;
        finished(desk.resume_and_wait(&run).await.unwrap());
        assert_eq!(effects(&world), BOTH_RAN);
    }
}

#[tokio::test]
async fn a_schema_that_changed_or_a_tool_that_is_gone_voids_the_call_and_not_the_run() {
    let changed = |change: fn(&mut Tools)| {
        let mut tools = tools();
        change(&mut tools);
        tools
    };
    let cases: [(Tools, [bool; 2], &str); 4] = [
        (
            changed(|tools| tools.input["properties"]["more"] = json!({"type": "string"})),
            [true, false],
            "another schema",
        ),
        (
            changed(|tools| tools.question = json!({"type": ["string", "null"]})),
            [false, true],
            "another schema",
        ),
        (
            changed(|tools| tools.answer = json!({"type": "integer"})),
            [false, true],
            "another schema",
        ),
        (changed(|tools| tools.gone = true), [true, true], "any more"),
    ];
    for (tools, void, why) in cases {
        for decided in [true, false] {
            let world = World::new();
            let (run, before) = first(&world, decided).await;
            let permits = if tools.gone {
                r#"@id("other") permit (principal, action == Action::"balance", resource);"#
            } else {
                POLICY
            };
            let desk = host::<SAME>(&world, echo(), &tools, permits).await;
            let outcome = desk.resume_and_wait(&run).await.unwrap();
            let calls = stored(&desk, &run).await;
            for (call, void) in calls.iter().zip(void) {
                let told = call.outcome.as_deref().unwrap_or_default();
                assert_eq!(
                    call.state == CallState::Superseded,
                    void,
                    "{}: {told}",
                    call.tool
                );
                assert_eq!(told.contains(why), void, "{}: {told}", call.tool);
            }
            assert!(effects(&world).len() < 2, "{:?}", effects(&world));
            if void == [true, true] {
                // The run goes on, and the model is told of both.
                let text = finished(outcome);
                assert_eq!(text.matches(why).count(), 2, "{text}");
            }
            // What was voided cannot be decided any more.
            for (call, void) in before.iter().zip(void) {
                if void {
                    let cancel = about(call, Verdict::Cancel);
                    assert!(desk.decide(&alice(), cancel).await.is_err());
                }
            }
        }
    }
}

#[tokio::test]
async fn another_policy_for_the_tool_asks_again() {
    let world = World::new();
    let (run, before) = first(&world, true).await;
    let changed = POLICY.replace("count >= 1", "count >= 1 && context.input.what != \"x\"");
    let desk = host::<SAME>(&world, echo(), &tools(), &changed).await;
    asked_again(
        &world,
        &desk,
        &run,
        &before,
        "the policy for this tool changed",
    )
    .await;
}

#[tokio::test]
async fn another_agent_asks_again() {
    let why = "the agent's definition changed";
    let world = World::new();
    let (run, before) = first(&world, true).await;
    let desk = host::<INSTRUCTIONS>(&world, echo(), &tools(), POLICY).await;
    asked_again(&world, &desk, &run, &before, why).await;

    let world = World::new();
    let (run, before) = first(&world, true).await;
    let desk = host::<MODEL>(&world, echo(), &tools(), POLICY).await;
    asked_again(&world, &desk, &run, &before, why).await;

    let world = World::new();
    let (run, before) = first(&world, true).await;
    let desk = host::<ONE_TOOL_MORE>(&world, echo(), &tools(), POLICY).await;
    asked_again(&world, &desk, &run, &before, why).await;
}

/// The approval is asked for again, and the old one counts for nothing; the answer to the
/// question, which nobody had to approve, is delivered.
async fn asked_again<A: Agent>(
    world: &World,
    desk: &Hosted<A>,
    run: &RunId,
    before: &[PendingCall],
    why: &str,
) {
    suspended(desk.resume_and_wait(run).await.unwrap());
    assert_eq!(effects(world), [BOTH_RAN[1]]);
    let again = the_one(desk, run).await;
    let told = again.reasons[0].to_string();
    assert!(told.contains(why), "{told}");
    assert!(again.approvals.is_empty());
    assert_ne!(again.fingerprint, before[0].fingerprint);
    assert!(desk.decide(&fiona(), approve(&before[0])).await.is_err());
    desk.decide(&fiona(), approve(&again)).await.unwrap();
    finished(desk.resume_and_wait(run).await.unwrap());
    assert_eq!(effects(world), BOTH_RAN);
}

#[tokio::test]
async fn what_is_decided_after_the_change_is_decided_about_what_was_shown() {
    // The first process's card is still open somewhere when the second process is there.
    let world = World::new();
    let (run, before) = first(&world, false).await;
    let desk = host::<INSTRUCTIONS>(&world, echo(), &tools(), POLICY).await;
    decide(&desk, &before).await;
    asked_again(
        &world,
        &desk,
        &run,
        &before,
        "the agent's definition changed",
    )
    .await;
}
