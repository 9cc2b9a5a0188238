//! Labels: words for what a call has to do with, such as `money`, `secret` or `untrusted`.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

/// The longest label, in characters.
const LONGEST: usize = 128;

const RULE: &str = "a label is a word or more, at most 128 characters, without control characters \
                    and without blanks around it";

/// Checks a label; the error is the rule.
pub(crate) fn check_label(label: &str) -> Result<(), &'static str> {
    let fits = !label.is_empty()
        && label.trim() == label
        && label.chars().count() <= LONGEST
        && !label.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(RULE) }
}

/// What a call has taken on while it runs, for the session to take on with the call's outcome.
#[derive(Clone, Debug, Default)]
pub(crate) struct TakenLabels(Arc<Mutex<BTreeSet<String>>>);

impl TakenLabels {
    pub(crate) fn add(&self, label: String) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.insert(label);
    }

    pub(crate) fn all(&self) -> BTreeSet<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_short_and_shows_all_that_is_in_it() {
        for label in ["secret", "eu only", "geheim ä", &"x".repeat(128)] {
            assert_eq!(check_label(label), Ok(()), "{label}");
        }
        for label in ["", " ", "secret ", "a\nb", "a\u{0}", &"x".repeat(129)] {
            assert_eq!(check_label(label), Err(RULE), "{label:?}");
        }
    }
}
