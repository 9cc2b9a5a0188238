//! Whatever bytes a database row holds: ids, digests and stored texts are refused or round-trip.
#![no_main]

use agentkit::call::{CallId, CallState, Canonical, Fingerprint};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(id) = text.parse::<CallId>() {
        assert_eq!(id.as_str(), text);
    }
    if let Ok(fingerprint) = text.parse::<Fingerprint>() {
        assert_eq!(fingerprint.to_string(), text);
    }
    if let Ok(state) = text.parse::<CallState>() {
        assert_eq!(state.as_str(), text);
    }
    if let Ok(canonical) = Canonical::from_stored(text) {
        assert_eq!(canonical.as_str(), text);
    }
});
