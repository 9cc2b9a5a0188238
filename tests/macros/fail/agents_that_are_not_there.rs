use agentkit::agent;

#[agent(name = "a", model = "openai/gpt-5-mini", instructions = "x", agents = [Missing, no::Such])]
pub struct A;

fn main() {}
