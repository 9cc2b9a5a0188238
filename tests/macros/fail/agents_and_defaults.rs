//! Sub-agents, tools at run time and defaults: each mistake is said where it is.
use agentkit::{agent, agent::Agent as _, tool};

/// A tool.
#[tool]
fn other() {}

#[agent(name = "below", model = "openai/gpt-5-mini", instructions = "x")]
pub struct Below;

#[agent(name = "a", model = "openai/gpt-5-mini", instructions = "x", agents = [Below, Below, 3])]
pub struct A;

#[agent(
    name = "c",
    model = "openai/gpt-5-mini",
    instructions = "x",
    tools = [other],
    dynamic_tools,
    max_steps = 0,
    max_time = "soon",
    temperature = -1,
    require_approval = "why",
    max_step = 3,
)]
pub struct C;

#[agent(name = "d", model = "openai/gpt-5-mini", instructions = "x", max_steps = "many", require_approval(when = |call| call.tool))]
pub struct D;

fn main() {
    let _ = Below::builder().tools(Vec::new());
}
