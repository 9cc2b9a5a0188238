//! Adding a sub-agent, or a tool to one, makes every handler that forgot it fail to compile.
use agentkit::{agent, agent::Pending, approval::Decision, tool};

/// Refunds.
#[tool(require_approval)]
fn refund(cents: u64) -> u64 {
    cents
}

/// Ships.
#[tool(require_approval)]
fn ship(order: String) -> String {
    order
}

/// Below; `ship` was added later.
#[agent(name = "stock", model = "openai/gpt-5-mini", instructions = "x", tools = [refund, ship])]
pub struct Stock;

/// Above.
#[agent(name = "desk", model = "openai/gpt-5-mini", instructions = "x", tools = [refund], agents = [Stock])]
pub struct Desk;

/// Complete before there was a sub-agent.
fn one(pending: DeskPending) -> Decision {
    match pending {
        DeskPending::Refund(Pending::Approval(refund)) => refund.approve(),
    }
}

/// Complete before `ship`.
fn two(pending: DeskPending) -> Decision {
    match pending {
        DeskPending::Refund(Pending::Approval(refund)) => refund.approve(),
        DeskPending::StockTask(task) => task.approve(),
        DeskPending::Stock(StockPending::Refund(Pending::Approval(refund))) => refund.approve(),
    }
}

/// Without tools that are added at run time there is no `Other`.
fn three(pending: DeskPending) {
    if let DeskPending::Other(_) = pending {}
}

fn main() {}
