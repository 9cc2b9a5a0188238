//! Names: what providers accept, and how Rust spells them.

/// What every known model provider accepts as the name of a tool.
pub(crate) const RULE: &str = "a name starts with a letter or `_`, continues with letters, \
                               digits, `_` and `-` (all ASCII), and has at most 64 bytes";

/// Whether providers accept the name.
pub(crate) fn is_accepted(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        && name.len() <= 64
}

/// `issue_refund` as `IssueRefund`.
pub(crate) fn camel(snake: &str) -> String {
    let mut camel = String::with_capacity(snake.len());
    for word in snake.split('_') {
        let mut letters = word.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(letters.as_str());
    }
    // A name of underscores or digits only is no identifier without its underscore.
    if camel.starts_with(|first: char| first.is_alphabetic()) {
        camel
    } else {
        format!("_{camel}")
    }
}

/// `RefundDesk` as `refund_desk`.
pub(crate) fn snake(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    let mut previous_lower = false;
    for letter in camel.chars() {
        if letter.is_uppercase() && previous_lower {
            snake.push('_');
        }
        previous_lower = letter.is_lowercase() || letter.is_numeric();
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// The one of `known` that somebody who wrote `word` most likely meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be inserted, removed or replaced.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let above = *cell;
            left = (above + 1)
                .min(left + 1)
                .min(diagonal + usize::from(x != y));
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_accept_what_the_rule_says() {
        for name in ["a", "_", "issue_refund", "a-1", &"x".repeat(64)] {
            assert!(is_accepted(name), "{name}");
        }
        for name in ["", "1a", "-a", "bad name!", "ä", &"x".repeat(65)] {
            assert!(!is_accepted(name), "{name}");
        }
    }

    #[test]
    fn cases_are_converted() {
        assert_eq!(camel("issue_refund"), "IssueRefund");
        assert_eq!(camel("match"), "Match");
        assert_eq!(camel("_1"), "_1");
        assert_eq!(snake("RefundDesk"), "refund_desk");
        assert_eq!(snake("HTTPDesk2"), "httpdesk2");
    }

    #[test]
    fn the_nearest_key_is_one_letter_or_a_quarter_away() {
        let known = ["name", "require_approval", "resume"];
        assert_eq!(nearest("nam", &known), Some("name"));
        assert_eq!(nearest("require_aproval", &known), Some("require_approval"));
        assert_eq!(nearest("resum", &known), Some("resume"));
        assert_eq!(nearest("bogus", &known), None);
    }
}
