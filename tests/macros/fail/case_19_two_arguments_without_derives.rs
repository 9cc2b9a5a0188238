use agentkit::tool;

pub struct Conn;
pub struct Row;

/// Neither is an argument; each is said once.
#[tool]
async fn f(id: u64, c: Conn, r: &Row) -> u64 {
    let _ = (c, r);
    id
}

fn main() {}
