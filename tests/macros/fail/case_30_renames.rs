use agentkit::tool;

/// Two of one name.
#[tool]
fn f(a: u8, #[arg(rename = "a")] b: u8, #[arg(renam = "c")] c: u8) {
    let _ = (a, b, c);
}

fn main() {}
