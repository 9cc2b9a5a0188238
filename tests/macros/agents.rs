//! Agents and their generated enums.

use agentkit::{
    agent,
    agent::{Agent, PendingSet, ResumeSet},
    tool,
    tool::Flow,
};
use serde_json::json;

/// Finds an order.
#[tool(read_only)]
fn find_order(id: &str) -> String {
    id.to_owned()
}

mod money {
    /// Refunds.
    #[agentkit::tool(require_approval, destructive, name = "refund")]
    pub fn issue_refund(cents: u64) -> u64 {
        cents
    }
}

/// Asks.
#[tool(suspend = String, resume = u8)]
fn ask(#[resume] answer: Option<u8>) -> Flow<u8, String> {
    answer.map_or(Flow::Suspend("?".into()), Flow::Done)
}

/// A desk.
#[agent(
    name = "desk",
    model = "openai/gpt-5-mini",
    instructions = concat!("You are", " a clerk."),
    tools = [find_order, money::issue_refund as Refund, ask, #[cfg(any())] missing],
    policies = ["desk.cedar"],
)]
pub struct Desk;

/// Generic.
#[agent(name = "generic", model = "a/b", instructions = "", tools = [ask])]
pub struct Generic<T>(T);

/// Empty.
#[agent(name = "empty", model = "a/b", instructions = "")]
pub struct Empty(u8, u8);

#[test]
fn case_39_structs_of_every_form_are_agents() {
    let desk = Desk::definition();
    assert_eq!(desk.name, "desk");
    assert_eq!(desk.model, "openai/gpt-5-mini");
    assert_eq!(desk.instructions, "You are a clerk.");
    let names: Vec<_> = desk
        .tools
        .iter()
        .map(|tool| tool.spec().name.clone())
        .collect();
    assert_eq!(names, ["find_order", "refund", "ask"]);
    assert_eq!(desk.policies.len(), 1);
    assert_eq!(Generic::<u8>::definition().tools.len(), 1);
    assert!(Empty::definition().tools.is_empty());
    assert_ne!(desk.digest(), Empty::definition().digest());
    let _ = (Generic(1_u8).0, Empty(1, 2).0, Empty(1, 2).1);
}

#[test]
fn answers_are_typed_by_the_tool_that_asked() {
    let answer = DeskResume::decode("ask", &json!(3)).unwrap();
    assert!(matches!(answer, DeskResume::Ask(3)));
    assert_eq!(answer.tool(), "ask");
    assert_eq!(answer.encode().unwrap().as_str(), "3");
    assert!(DeskResume::decode("ask", &json!("3")).is_err());
    assert!(DeskResume::decode("find_order", &json!("3")).is_err());
    let error = DeskResume::decode("missing", &json!(1)).unwrap_err();
    assert!(error.to_string().contains("the agent `desk`"), "{error}");
}

/// A match over all pending calls is complete without arms for questions that nobody asks.
#[allow(dead_code)]
fn decide(pending: DeskPending) -> agentkit::approval::Decision {
    use agentkit::agent::Pending;
    match pending {
        DeskPending::FindOrder(Pending::Approval(approval)) => approval.approve(),
        DeskPending::Refund(Pending::Approval(approval)) if approval.args.cents > 5 => {
            approval.decline("too much")
        }
        DeskPending::Refund(Pending::Approval(approval)) => approval.approve(),
        DeskPending::Ask(Pending::Approval(approval)) => approval.cancel(),
        DeskPending::Ask(Pending::Question(question)) => question.answer(1).unwrap(),
    }
}

fn is_pending_set<T: PendingSet>() {}

#[test]
fn pending_calls_have_a_set() {
    is_pending_set::<DeskPending>();
    is_pending_set::<EmptyPending>();
}
