use agentkit::tool;

/// Unsafe.
#[tool]
unsafe fn a() {}

/// Foreign.
#[tool]
extern "C" fn b() {}

/// Variadic.
#[tool]
unsafe extern "C" fn c(x: u8, ...) {}

/// No function.
#[tool]
pub struct S;

fn main() {}
