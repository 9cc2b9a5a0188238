use agentkit::{agent, tool::tools};

pub struct Plain;

#[agent(name = "a", model = "openai/gpt-5-mini", instructions = "x", tools = [Plain])]
pub struct A;

fn without_attribute() {}

#[agent(name = "b", model = "openai/gpt-5-mini", instructions = "x", tools = [without_attribute])]
pub struct B;

fn main() {
    let _ = tools![Plain];
}
