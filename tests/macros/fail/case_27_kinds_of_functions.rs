use agentkit::tool;

/// Unsafe.
#[tool]
unsafe fn a() {}

/// Foreign.
#[tool]
extern "C" fn b() {}

/// No function.
#[tool]
pub struct S;

fn main() {}
