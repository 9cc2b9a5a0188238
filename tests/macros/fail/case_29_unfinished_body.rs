use agentkit::{tool, tool::Tool};

/// Unfinished.
#[tool]
fn f(a: String) -> usize {
    let x = a.
}

fn main() {
    let _ = f::NAME;
}
