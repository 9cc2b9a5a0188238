use agentkit::{agent, tool};

/// A tool.
#[tool]
fn a() {}

#[agent(name = "a", instructions = "x", tools = [a, a])]
#[agent(name = "a", model = "openai/gpt-5-mini", instructions = "x")]
pub struct A;

#[agent(name = "b", model = "gpt", instructions = "x", agents = A, tool = [])]
pub struct B;

fn main() {}
