//! Doc comments as descriptions.
//!
//! The parts are joined when the program runs, since `#[doc = include_str!("…")]` is known to the
//! compiler only.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Attribute, Expr, Lit, Meta};

/// Doc comments in order: one expression of type `&str` for each attribute.
#[derive(Clone, Default)]
pub(crate) struct Docs(Vec<TokenStream>);

impl Docs {
    /// Takes what `attribute` says, if it is a doc comment.
    pub(crate) fn take(&mut self, attribute: &Attribute) -> bool {
        let Meta::NameValue(pair) = &attribute.meta else {
            return false;
        };
        if !pair.path.is_ident("doc") {
            return false;
        }
        self.0.push(match literal(&pair.value) {
            Some(text) => clean(&text).into_token_stream(),
            None => pair.value.to_token_stream(),
        });
        true
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An expression for the text: a `String`.
    pub(crate) fn expression(&self, root: &TokenStream) -> TokenStream {
        let parts = &self.0;
        quote!(#root::__private::description(&[#(#parts),*]))
    }
}

fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

/// The text of one comment: without the space after `///`, and without the stars of a block.
fn clean(comment: &str) -> String {
    let starred = comment.contains('\n')
        && comment
            .lines()
            .skip(1)
            .filter(|line| !line.trim().is_empty())
            .all(|line| line.trim_start().starts_with('*'));
    let lines: Vec<&str> = comment
        .lines()
        .map(|line| {
            let line = if starred {
                let trimmed = line.trim_start();
                trimmed.strip_prefix('*').unwrap_or(line)
            } else {
                line
            };
            line.strip_prefix(' ').unwrap_or(line)
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn one_space_is_stripped_from_each_line() {
        assert_eq!(clean(" a"), "a");
        assert_eq!(clean("     let x = 1;"), "    let x = 1;");
        assert_eq!(clean(""), "");
        assert_eq!(clean(" Say \"hi\" \\ {x}"), "Say \"hi\" \\ {x}");
    }

    #[test]
    fn the_stars_of_a_block_are_no_text() {
        assert_eq!(clean("\n * One\n *  two\n "), "\nOne\n two\n");
        assert_eq!(clean(" block "), "block ");
        assert_eq!(clean("\n * a\n b"), "\n* a\nb");
    }
}
