use agentkit::{tool, tool::Flow};

/// Suspends with what it does not declare.
#[tool]
fn a() -> Flow<u8, String> {
    Flow::Suspend("?".into())
}

fn main() {}
