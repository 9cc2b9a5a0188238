use agentkit::{
    agent::{BuildError, Pending, ResumeSet as _},
    gate::RequireApproval,
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
};
use serde_json::json;

use crate::{desk::*, team::hands};

/// Pays what it is told to pay.
#[agent(name = "cashier", model = "test/scripted", instructions = "You pay.", tools = [pay])]
pub struct Cashier;

/// Handles payments.
#[agent(
    name = "clerk",
    model = "test/scripted",
    instructions = "You are a clerk.",
    tools = [balance, choose],
    agents = [Cashier],
)]
pub struct Clerk;

/// Leads; its own tool has the name of one of the cashier's.
#[agent(
    name = "lead",
    model = "test/scripted",
    instructions = "You lead.",
    tools = [pay],
    agents = [Clerk as Office, #[cfg(any())] Missing],
)]
pub struct Lead;

struct Team {
    lead: ScriptedModel,
    clerk: ScriptedModel,
    cashier: ScriptedModel,
}

impl Default for Team {
    fn default() -> Self {
        Self {
            lead: echo(),
            clerk: echo(),
            cashier: echo(),
        }
    }
}

impl Team {
    async fn host(self, world: &World) -> Hosted<Lead> {
        let builder = world.builder::<Lead>(self.lead).await;
        let builder = builder.model_of("clerk", self.clerk);
        builder.model_of("cashier", self.cashier).build().unwrap()
    }
}

/// Every call that can wait at the lead, at any depth: complete without a wildcard.
fn decide(pending: LeadPending) -> (&'static str, Decision) {
    match pending {
        LeadPending::Pay(Pending::Approval(call)) => ("own", call.decline("not by me")),
        LeadPending::OfficeTask(task) => ("task", task.amend("pay bob, kindly").unwrap()),
        LeadPending::Office(ClerkPending::Balance(Pending::Approval(call))) => {
            ("balance", call.approve())
        }
        LeadPending::Office(ClerkPending::Choose(Pending::Approval(call))) => {
            ("choice", call.approve())
        }
        LeadPending::Office(ClerkPending::Choose(Pending::Question(question))) => {
            let seat = question.payload.free[0];
            ("question", question.answer(Seat { seat }).unwrap())
        }
        LeadPending::Office(ClerkPending::CashierTask(task)) => ("task", task.approve()),
        LeadPending::Office(ClerkPending::Cashier(CashierPending::Pay(Pending::Approval(
            call,
        )))) => {
            assert_eq!(call.args.to, "bob");
            ("nested", call.approve())
        }
    }
}

#[tokio::test]
async fn calls_two_agents_below_are_matched_and_decided() {
    let world = World::new();
    let payment = |cents| Reply::calls().call("pay", &json!({"to": "bob", "cents": cents}));
    let team = Team {
        lead: calls(
            Reply::calls()
                .call("pay", &json!({"to": "eve", "cents": 9}))
                .call("clerk", &json!({"task": "have bob paid"})),
        ),
        clerk: calls(hands("cashier", "pay bob").call("choose", &json!({}))),
        cashier: calls(payment(5)),
    };
    let lead = team.host(&world).await;
    let waiting = suspended(lead.generate(Input::new(alice(), "go")).await.unwrap());
    assert!(waiting.delegated.is_empty() && waiting.unfit.is_empty());
    let mut kinds = Vec::new();
    for pending in waiting.pending {
        let (kind, decision) = decide(pending);
        kinds.push(kind);
        let by = if kind == "question" { alice() } else { fiona() };
        lead.decide(&by, decision).await.unwrap();
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["nested", "own", "question"]);
    finished(lead.resume_and_wait(&waiting.run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn a_task_that_needs_approval_is_typed_too_and_can_be_amended() {
    let world = World::new();
    let team = Team {
        lead: calls(hands("clerk", "pay bob")),
        clerk: echo(),
        cashier: echo(),
    };
    let lead = team.host(&world).await;
    let input = Input::new(alice(), "go").require_approval(RequireApproval::On);
    let mut waiting = suspended(lead.generate(input).await.unwrap());
    let Some(LeadPending::OfficeTask(task)) = waiting.pending.pop() else {
        panic!("{:?}", waiting.pending)
    };
    assert_eq!(task.task, "pay bob");
    let amended = lead
        .decide(&fiona(), task.amend("do nothing").unwrap())
        .await;
    amended.unwrap();
    let mut waiting = suspended(lead.resume_and_wait(&waiting.run).await.unwrap());
    let Some(LeadPending::OfficeTask(task)) = waiting.pending.pop() else {
        panic!("{:?}", waiting.pending)
    };
    assert_eq!(task.task, "do nothing");
    lead.decide(&frank(), task.approve()).await.unwrap();
    finished(lead.resume_and_wait(&waiting.run).await.unwrap());
}

#[tokio::test]
async fn an_answer_as_json_is_typed_by_the_agent_whose_tool_asked() {
    let world = World::new();
    let team = Team {
        lead: calls(hands("clerk", "choose a seat")),
        clerk: calls(Reply::calls().call("choose", &json!({}))),
        cashier: echo(),
    };
    let lead = team.host(&world).await;
    let run = suspended(lead.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&lead, &run).await;
    let answer = LeadResume::decode_for(&call, &json!({"seat": 3})).unwrap();
    assert!(matches!(
        answer,
        LeadResume::Office(ClerkResume::Choose(Seat { seat: 3 }))
    ));
    assert_eq!(answer.tool(), "choose");
    assert_eq!(answer.encode().unwrap().as_str(), r#"{"seat":3}"#);
    assert!(LeadResume::decode_for(&call, &json!({"seat": "3"})).is_err());
    // Without the call it is taken for an answer to a tool of the lead's own.
    assert!(LeadResume::decode("choose", &json!({"seat": 3})).is_err());
}

#[test]
fn a_sub_agent_is_described_by_its_comment() {
    let lead = Lead::definition();
    let [clerk] = lead.agents.as_slice() else {
        panic!("the agent that is configured away is there")
    };
    assert_eq!(clerk.description, "Handles payments.");
    assert_eq!(
        (Clerk::name(), Lead::name()),
        ("clerk".into(), "lead".into())
    );
}

/// Has a tool and a sub-agent of one name.
#[agent(
    name = "muddle",
    model = "test/scripted",
    instructions = "x",
    tools = [cashier_tool],
    agents = [Cashier],
)]
pub struct Muddle;

/// Is called as the agent.
#[tool(name = "cashier")]
fn cashier_tool() {}

#[tokio::test]
async fn a_tool_and_an_agent_of_one_name_are_refused_with_both_places() {
    let world = World::new();
    let Err(error) = world.builder::<Muddle>(echo()).await.build() else {
        panic!("two are called `cashier`")
    };
    let BuildError::DuplicateTool { source, .. } = error else {
        panic!("{error}")
    };
    let text = source.to_string();
    let [Some(tool), Some(agent)] = source.sources() else {
        panic!("{text}")
    };
    assert!(tool.line > agent.line && agent.file.ends_with("are_typed.rs"));
    assert!(
        text.contains(&format!("{}:{}", agent.file, agent.line)),
        "{text}"
    );
}
