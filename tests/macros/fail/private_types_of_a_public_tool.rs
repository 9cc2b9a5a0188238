//! A public tool cannot show private types: its result, its question and its answer are named in
//! `Tool`. Private arguments are not.
#![allow(private_interfaces)]
use agentkit::{
    __private::{schemars, serde},
    tool,
    tool::Flow,
};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "agentkit::__private::serde")]
#[schemars(crate = "agentkit::__private::schemars")]
struct Private {
    n: u8,
}

/// A private argument is fine.
#[tool]
pub fn a(private: Private) -> u8 {
    private.n
}

/// A private result.
#[tool]
pub fn b() -> Private {
    Private { n: 1 }
}

/// A private question and a private answer.
#[tool(suspend = Private, resume = Private)]
pub fn c(#[resume] answer: Option<Private>) -> Flow<u8, Private> {
    answer.map_or(Flow::Suspend(Private { n: 1 }), |answer| Flow::Done(answer.n))
}

fn main() {}
