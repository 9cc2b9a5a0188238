use agentkit::tool;

/// A space.
#[tool(name = "bad name!")]
fn a() {}

/// Nothing.
#[tool(name = "")]
fn b() {}

/// A digit.
#[tool(name = "1st")]
fn c() {}

/// The default name.
#[tool]
fn größe() {}

fn main() {}
