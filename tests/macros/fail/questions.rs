use agentkit::{tool, tool::Flow};

/// No answer's type.
#[tool(suspend = String)]
fn a() -> Flow<u8, String> {
    Flow::Done(1)
}

/// Nobody takes the answer.
#[tool(suspend = String, resume = u8)]
fn b() -> Flow<u8, String> {
    Flow::Done(1)
}

/// No question.
#[tool]
fn c(#[resume] answer: Option<u8>) -> u8 {
    answer.unwrap_or_default()
}

fn main() {}
