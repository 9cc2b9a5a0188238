use agentkit::tool;

pub struct Pool;

/// Cannot be cloned.
#[tool]
fn f(#[ctx] pool: Pool) {
    let _ = pool;
}

fn main() {}
