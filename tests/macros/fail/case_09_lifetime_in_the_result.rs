use agentkit::tool;

/// Borrows by name.
#[tool]
fn f<'a>(x: &'a str) -> &'a str {
    x
}

/// Borrows inside of another type.
#[tool]
fn g(x: Option<&str>) -> usize {
    x.map_or(0, str::len)
}

fn main() {}
