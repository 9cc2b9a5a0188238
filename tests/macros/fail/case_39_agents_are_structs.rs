use agentkit::agent;

#[agent(name = "b", model = "openai/gpt-5-mini", instructions = "x")]
pub enum B {}

fn main() {}
