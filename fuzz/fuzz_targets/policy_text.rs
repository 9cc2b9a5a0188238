//! Whatever text is loaded as policies: places in findings, equal digests, forbids that hold.
#![no_main]

#[path = "../../agentkit-policy/tests/common/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| properties::policy_text(text));
