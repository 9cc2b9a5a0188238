use agentkit::tool;

/// Twice.
#[tool(require_approval, require_approval)]
fn a() {}

/// No duration.
#[tool(require_approval(ttl = "soon", quorum = 0))]
fn b() {}

/// No form.
#[tool(require_approval = 3)]
fn c() {}

fn main() {}
