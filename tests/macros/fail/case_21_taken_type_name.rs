#![allow(non_camel_case_types)]
use agentkit::tool;

pub struct search {}

/// The type's name is taken.
#[tool]
fn search() {}

fn main() {}
