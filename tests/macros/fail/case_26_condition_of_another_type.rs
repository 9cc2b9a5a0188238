use agentkit::tool;

/// Says a number.
#[tool(require_approval(when = |args| args.cents))]
fn a(cents: u64) -> u64 {
    cents
}

fn large(cents: u64) -> bool {
    cents > 100
}

/// Takes something else than the arguments.
#[tool(require_approval(when = large))]
fn b(cents: u64) -> u64 {
    cents
}

/// Names no argument.
#[tool(require_approval(when = |args| args.amount > 3))]
fn c(cents: u64) -> u64 {
    cents
}

fn main() {}
