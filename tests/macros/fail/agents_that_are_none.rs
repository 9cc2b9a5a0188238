use agentkit::{agent, agent::Agent};

pub struct Plain;

#[agent(name = "a", model = "openai/gpt-5-mini", instructions = "x", agents = [Plain])]
pub struct A;

fn main() {
    // The agent above is one all the same.
    drop(A::builder());
}
