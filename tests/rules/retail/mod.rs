//! A real shop behind the gate: the retail suite of tau-bench, 115 tasks over 1,000 orders.

mod arithmetic;
mod data;
mod dice;
mod direct;
mod money;
mod process;
mod random;
mod replay;
mod shared;
mod shop;
mod shop_rules;
mod tools;
