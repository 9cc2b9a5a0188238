//! Whatever JSON a model sends as arguments: seen as it is, or denied with its path.
#![no_main]

#[path = "../../agentkit-policy/tests/common/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| properties::tool_arguments(text));
