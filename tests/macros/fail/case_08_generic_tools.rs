use agentkit::tool;

/// Generic over a type.
#[tool]
fn f<T: ToString>(x: T) -> String {
    x.to_string()
}

/// Generic over a constant.
#[tool]
fn g<const N: usize>(x: u8) -> usize {
    N + usize::from(x)
}

fn main() {}
