//! LLM agents whose every tool call passes a gate.

pub mod call;
