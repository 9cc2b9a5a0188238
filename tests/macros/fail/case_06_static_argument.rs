use agentkit::tool;

/// Static.
#[tool]
async fn f(x: &'static str) {
    let _ = x;
}

fn main() {}
