use agentkit::tool;

pub struct Conn;

/// Not `Serialize`.
#[tool]
fn f() -> Result<Conn, std::fmt::Error> {
    Ok(Conn)
}

fn main() {}
