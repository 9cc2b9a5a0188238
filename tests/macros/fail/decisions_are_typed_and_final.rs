use agentkit::{
    agent::{Approval, Pending, Question},
    approval::Decision,
    tool,
};

/// Asks nothing.
#[tool(require_approval)]
fn refund(cents: u64) -> u64 {
    cents
}

/// Asks.
#[tool(suspend = String, resume = u8)]
fn ask(#[resume] answer: Option<u8>) -> agentkit::tool::Flow<u8, String> {
    answer.map_or(agentkit::tool::Flow::Suspend("?".into()), agentkit::tool::Flow::Done)
}

fn twice(approval: Approval<refund>) -> [Decision; 2] {
    [approval.approve(), approval.decline("no")]
}

fn wrong_answer(question: Question<ask>) {
    let _ = question.answer("text");
}

fn missing_arm(pending: Pending<ask>) -> Decision {
    match pending {
        Pending::Approval(approval) => approval.approve(),
    }
}

fn main() {}
