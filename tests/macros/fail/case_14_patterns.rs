use agentkit::tool;

pub struct Point {
    x: i64,
}

/// A tuple.
#[tool]
fn f((a, b): (i64, i64)) -> i64 {
    a + b
}

/// Nothing.
#[tool]
fn g(_: i64) {}

/// A struct.
#[tool]
fn h(Point { x, .. }: Point) -> i64 {
    x
}

fn main() {}
