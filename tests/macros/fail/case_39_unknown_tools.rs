use agentkit::agent;

#[agent(name = "a", model = "openai/gpt-5-mini", instructions = "x", tools = [missing, no::such])]
pub struct A;

fn main() {}
