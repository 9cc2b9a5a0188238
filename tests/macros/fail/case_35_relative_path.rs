use agentkit::tool;

/// Relative.
#[tool(crate = facade::agentkit)]
fn f() {}

fn main() {}
