//! Tokens at another place in the source, so that what the compiler says of them is said there.

use proc_macro2::{Span, TokenStream};

/// The tokens as if they were written at `span`.
pub(crate) fn as_written(tokens: &TokenStream, span: Span) -> TokenStream {
    moved(tokens.clone(), |_| span)
}

/// The tokens at `span`, with the names that they have where they are.
pub(crate) fn keeping_meaning(tokens: TokenStream, span: Span) -> TokenStream {
    moved(tokens, |own| span.resolved_at(own))
}

fn moved(tokens: TokenStream, to: impl Fn(Span) -> Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut tree| {
            tree.set_span(to(tree.span()));
            tree
        })
        .collect()
}
