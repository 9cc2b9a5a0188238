use agentkit::{tool, tool::tools};

/// One.
#[tool]
fn a() {}

/// Another of the same name.
#[tool(name = "a")]
fn b() {}

fn main() {
    let _ = tools![a, a];
    let _ = tools![a, b];
}
