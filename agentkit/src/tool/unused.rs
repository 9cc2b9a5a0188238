//! Finds what a type silently dropped while it was decoded.
//!
//! serde buffers values for `flatten`, `untagged` and tagged enums, and unknown keys in such a
//! buffer vanish unseen. So the effective value is compared with the raw one, and each key that
//! did not come back is put to the test: if the result is the same without the key, and the same
//! whatever the key's value is, the type does not know the key.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::settle::kind;
use crate::call::Canonical;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// Something of the raw value that the type did not take.
#[derive(Debug, PartialEq)]
pub(super) enum Loss {
    /// A key that the type does not know.
    Unknown(Vec<Step>),
    /// A key that the type knows, with a value that makes no difference.
    Dropped(Vec<Step>),
    /// A spelling that serde takes and the schema does not.
    Shape {
        path: Vec<Step>,
        expected: String,
        found: &'static str,
    },
    /// More keys than can be put to the test.
    Unchecked { keys: usize, limit: usize },
}

/// The most keys that are put to the test.
const MAX_SUSPECTS: usize = 256;

/// The most bytes of JSON that all tests together decode.
const MAX_BYTES: usize = 32 << 20;

/// Writes a path such as `$.items[2].name`.
pub(super) fn render(path: &[Step]) -> String {
    let mut text = String::from("$");
    for step in path {
        // Writing to a `String` cannot fail.
        let _ = match step {
            Step::Key(key) => write!(text, ".{key}"),
            Step::Index(index) => write!(text, "[{index}]"),
        };
    }
    text
}

/// What of `raw` is lost in `effective`, whose text is `canonical`; `settle` decodes and
/// serialises a value.
pub(super) fn losses(
    raw: &Value,
    effective: &Value,
    canonical: &Canonical,
    settle: &dyn Fn(&Value) -> Option<Canonical>,
) -> Vec<Loss> {
    let mut search = Search::default();
    search.compare(raw, Some(effective));
    let Search {
        suspects,
        mut losses,
        ..
    } = search;

    let probes = probes();
    let per_key = canonical.as_bytes().len().max(64) * (probes.len() + 1);
    let limit = MAX_SUSPECTS.min(MAX_BYTES / per_key).max(8);
    if suspects.len() > limit {
        losses.push(Loss::Unchecked {
            keys: suspects.len(),
            limit,
        });
        return losses;
    }
    let mut gone: Vec<Vec<Step>> = Vec::new();
    for path in suspects {
        // What lies inside of a lost key is lost with it.
        if gone.iter().any(|outer| path.starts_with(outer)) {
            continue;
        }
        let same = |value| settle(&with(raw, &path, value)).as_ref() == Some(canonical);
        if !same(None) {
            continue;
        }
        let loss = if probes.iter().all(|probe| same(Some(probe))) {
            Loss::Unknown(path.clone())
        } else if is_empty(at(raw, &path)) {
            // Left out when serialised because it is the default.
            continue;
        } else {
            Loss::Dropped(path.clone())
        };
        losses.push(loss);
        gone.push(path);
    }
    losses
}

/// One value of each kind: no field takes them all and ignores them all.
fn probes() -> [Value; 6] {
    [
        Value::Null,
        json!(true),
        json!(-1),
        json!("?"),
        json!([]),
        json!({}),
    ]
}

#[derive(Default)]
struct Search {
    path: Vec<Step>,
    suspects: Vec<Vec<Step>>,
    losses: Vec<Loss>,
}

impl Search {
    fn compare(&mut self, raw: &Value, effective: Option<&Value>) {
        match raw {
            Value::Object(map) => {
                if let (Some(Value::String(variant)), 1) = (effective, map.len())
                    && map.get(variant).is_some_and(Value::is_null)
                {
                    self.shape(format!("the string `{variant}`"), raw);
                    return;
                }
                for (key, value) in map {
                    self.path.push(Step::Key(key.clone()));
                    let counterpart = effective.and_then(|effective| effective.get(key));
                    let nested = value.is_object() || value.is_array();
                    let present = if nested {
                        counterpart.is_some()
                    } else {
                        counterpart == Some(value)
                    };
                    if !present {
                        self.suspects.push(self.path.clone());
                    }
                    self.compare(value, counterpart);
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                if let Some(Value::Object(_)) = effective {
                    self.shape("an object".to_owned(), raw);
                    return;
                }
                for (index, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    self.compare(item, effective.and_then(|effective| effective.get(index)));
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn shape(&mut self, expected: String, raw: &Value) {
        self.losses.push(Loss::Shape {
            path: self.path.clone(),
            expected,
            found: kind(raw),
        });
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::Bool(true)) => false,
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
    }
}

fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// A copy of `value` in which the key at `path` has another value, or is gone.
fn with(value: &Value, path: &[Step], replacement: Option<&Value>) -> Value {
    let mut copy = value.clone();
    let Some((Step::Key(key), parents)) = path.split_last() else {
        return copy;
    };
    let parent = parents
        .iter()
        .try_fold(&mut copy, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        });
    if let Some(Value::Object(map)) = parent {
        match replacement {
            Some(replacement) => {
                map.insert(key.clone(), replacement.clone());
            }
            None => {
                map.remove(key);
            }
        }
    }
    copy
}
