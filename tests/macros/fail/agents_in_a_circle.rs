//! An agent cannot be below itself.
use agentkit::agent;

#[agent(name = "a", model = "openai/gpt-5-mini", instructions = "x", agents = [B])]
pub struct A;

#[agent(name = "b", model = "openai/gpt-5-mini", instructions = "x", agents = [A])]
pub struct B;

fn main() {}
