//! Whatever text a model writes: either it is refused, or it has one canonical text that decodes
//! to itself, and serde_json agrees that it was JSON.
#![no_main]

use agentkit::call::{Canonical, Limits, decode_value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(value) = decode_value(text, Limits::default()) else { return };
    serde_json::from_str::<serde_json::Value>(text).expect("serde_json accepts what is accepted here");
    let Ok(canonical) = Canonical::of(&value) else { return };
    let again = canonical.to_value().expect("a canonical text decodes");
    assert_eq!(Canonical::of(&again).expect("and has a canonical text"), canonical);
    Canonical::from_stored(canonical.as_str()).expect("that is taken back from the store");
});
