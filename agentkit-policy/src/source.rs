//! From the text of policy files to single policies with their places.

use crate::declaration::PolicySource;

/// The text of one policy and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) source: &'a PolicySource,
    /// Line and column of its first token, counted from 1.
    start: (u32, u32),
    /// From its first token to its semicolon.
    pub(crate) text: &'a str,
    /// Upper bound of how deep its expressions can be nested, known before it is parsed: Cedar's
    /// parser recurses without a limit of its own.
    pub(crate) nesting_bound: usize,
}

impl Statement<'_> {
    /// Line and column, counted from 1, of a byte offset within the statement.
    pub(crate) fn place(&self, offset_within: usize) -> (u32, u32) {
        let before = self
            .text
            .char_indices()
            .take_while(|(at, _)| *at < offset_within)
            .map(|(_, c)| c);
        before.fold(self.start, step)
    }
}

/// The line and the column after a character.
fn step((line, column): (u32, u32), c: char) -> (u32, u32) {
    if c == '\n' {
        (line + 1, 1)
    } else {
        (line, column + 1)
    }
}

/// Cuts a source at the semicolons outside of texts and comments. The last statement may lack its
/// semicolon; Cedar's parser says so then.
pub(crate) fn statements(source: &PolicySource) -> Vec<Statement<'_>> {
    let text = source.text.as_str();
    let mut statements = Vec::new();
    // Sources are long: nothing is counted twice.
    let mut counted = (0, (1, 1));
    let mut place_of = |at: usize| {
        let (from, place) = counted;
        let between = text.get(from..at).unwrap_or_default();
        counted = (at, between.chars().fold(place, step));
        counted.1
    };
    let mut start = None;
    let mut nesting_bound = 0_usize;
    let mut chars = text.char_indices().peekable();
    let mut word = String::new();
    while let Some((at, c)) = chars.next() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            if matches!(
                word.as_str(),
                "if" | "else" | "then" | "has" | "like" | "is" | "in"
            ) {
                nesting_bound += 1;
            }
            word.clear();
        }
        match c {
            c if c.is_whitespace() => continue,
            '/' if chars.peek().is_some_and(|(_, next)| *next == '/') => {
                for (_, c) in chars.by_ref() {
                    if c == '\n' || c == '\r' {
                        break;
                    }
                }
                continue;
            }
            '"' => {
                start.get_or_insert(at);
                while let Some((_, c)) = chars.next() {
                    match c {
                        '\\' => {
                            chars.next();
                        }
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '(' | '[' | '{' | '.' | '!' | '-' | '+' | '*' | '&' | '|' | '=' | '<' | '>' => {
                nesting_bound += 1;
            }
            ';' => {
                let start = start.take().unwrap_or(at);
                if let Some(statement) = text.get(start..=at) {
                    statements.push(Statement {
                        source,
                        start: place_of(start),
                        text: statement,
                        nesting_bound,
                    });
                }
                nesting_bound = 0;
                continue;
            }
            _ => {}
        }
        start.get_or_insert(at);
    }
    if let Some(start) = start
        && let Some(statement) = text.get(start..)
    {
        statements.push(Statement {
            source,
            start: place_of(start),
            text: statement,
            nesting_bound,
        });
    }
    statements
}

/// The parts of a policy's text that are neither literal texts nor comments.
pub(crate) fn code_of(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let (code, other) = rest.split_at(at);
        parts.push(code);
        rest = if other.starts_with("//") {
            other.split_once(['\n', '\r']).map_or("", |(_, rest)| rest)
        } else if let Some(inside) = other.strip_prefix('"') {
            let mut escaped = false;
            let end = inside.find(|c| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            end.and_then(|end| inside.get(end + 1..)).unwrap_or("")
        } else {
            other.get(1..).unwrap_or("")
        };
    }
    parts.push(rest);
    parts
}
