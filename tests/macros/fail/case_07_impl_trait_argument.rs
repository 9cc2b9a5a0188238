use agentkit::tool;

/// Opaque.
#[tool]
fn f(x: impl Into<String>) {
    let _: String = x.into();
}

fn main() {}
