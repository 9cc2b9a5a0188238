//! Whatever JSON is declared as the schema of a tool: every argument visible, or a remedy.
#![no_main]

#[path = "../../agentkit-policy/tests/common/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| properties::tool_schema(text));
