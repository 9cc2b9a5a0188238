use std::{collections::BTreeMap, fmt};

use serde_json::Value;

/// What an application gives a run along, for its tools and its predicate. It is not stored, so
/// that it may hold secrets, and gone once another process continues the run; what is marked as
/// to be stored is kept with the run.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct RequestContext {
    pub(super) passing: BTreeMap<String, Value>,
    pub(super) stored: BTreeMap<String, Value>,
}

impl RequestContext {
    /// All that is there now. A value that is not stored counts before a stored one of its name.
    pub(crate) fn visible(&self) -> BTreeMap<String, Value> {
        let mut all = self.stored.clone();
        all.extend(self.passing.clone());
        all
    }
}

impl fmt::Debug for RequestContext {
    /// Names only: the values are likely to hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.passing.keys())
            .entries(self.stored.keys())
            .finish()
    }
}
