use agentkit::tool;

/// Nothing fits.
#[tool(
    timeout = "soon",
    labels = ["money", "", "money", 3],
    facts(a = |args| args.n, a = |args| args.n, b),
    require_approval(when = , quorum = 0),
)]
fn f(n: u64) -> u64 {
    n
}

/// Nor here.
#[tool(timeout, labels = "money", facts = 3)]
fn g(n: u64) -> u64 {
    n
}

fn main() {}
