use agentkit::tool;

/// Much is wrong.
#[tool(bogus = 1, name = 3, requireapproval, read_only, read_only)]
fn f((a, b): (u8, u8), x: impl Copy)
where
    u8: Copy,
{
    let _ = (a, b, x);
}

fn main() {}
