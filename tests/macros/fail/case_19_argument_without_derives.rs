use agentkit::tool;

pub struct Conn;

/// Not an argument.
#[tool]
fn f(c: Conn) {
    let _ = c;
}

fn main() {}
