//! Adding a tool to an agent makes every handler that forgot it fail to compile.
use agentkit::{
    agent,
    agent::Pending,
    approval::Decision,
    tool,
    tool::Flow,
};

/// Refunds.
#[tool(require_approval)]
fn refund(cents: u64) -> u64 {
    cents
}

/// Added later.
#[tool(require_approval)]
fn ship(order: String) -> String {
    order
}

/// Asks.
#[tool(suspend = String, resume = u8)]
fn ask(#[resume] answer: Option<u8>) -> Flow<u8, String> {
    answer.map_or(Flow::Suspend("?".into()), Flow::Done)
}

/// The clerk.
#[agent(name = "desk", model = "openai/gpt-5-mini", instructions = "x", tools = [refund, ship, ask])]
pub struct Desk;

/// Complete before `ship` was added.
fn one(pending: DeskPending) -> Decision {
    match pending {
        DeskPending::Refund(Pending::Approval(refund)) => refund.approve(),
        DeskPending::Ask(Pending::Approval(ask)) => ask.approve(),
        DeskPending::Ask(Pending::Question(question)) => question.cancel(),
    }
}

/// Another one.
fn two(pending: &DeskPending) -> &'static str {
    match pending {
        DeskPending::Refund(_) => "refund",
        DeskPending::Ask(_) => "ask",
    }
}

/// Forgets that `ask` asks.
fn three(pending: DeskPending) -> Decision {
    match pending {
        DeskPending::Refund(Pending::Approval(refund)) => refund.approve(),
        DeskPending::Ship(Pending::Approval(ship)) => ship.approve(),
        DeskPending::Ask(Pending::Approval(ask)) => ask.approve(),
    }
}

fn main() {}
