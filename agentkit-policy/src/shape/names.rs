//! Names of the generated entity types: readable, legal in Cedar, never taken twice.

use std::collections::BTreeSet;

use crate::provider::Extension;

/// Hands out names of entity types, unique over all tools of a set.
#[derive(Debug)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// Starts with the names that the engine itself and the application use.
    pub(crate) fn new(extension: &Extension) -> Self {
        let ours = ["User", "Role", "Agent", "Action"];
        Self {
            taken: ours
                .into_iter()
                .map(str::to_owned)
                .chain(extension.types.keys().cloned())
                .collect(),
        }
    }

    /// A name made of a tool and a path within its arguments: `tool__path_to_argument`.
    pub(crate) fn claim(&mut self, tool: &str, path: &str) -> String {
        let base = format!("{}__{}", identifier(tool), identifier(path));
        let mut name = base.clone();
        let mut number = 2_u32;
        while !self.taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        name
    }
}

fn identifier(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            if out.is_empty() && c.is_ascii_digit() {
                out.push('_');
            }
            out.push(c);
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    let out = out.trim_end_matches('_');
    // A name that begins with two underscores could be one of Cedar's own.
    if out.is_empty() { "x" } else { out }.to_owned()
}
