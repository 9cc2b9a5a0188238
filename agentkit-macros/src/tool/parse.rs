//! Takes a function apart without looking into its body.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{
    Attribute, Signature, Token, Visibility,
    parse::{Parse, ParseStream, Parser as _},
};

/// A function: everything before its body as syntax, the body as tokens.
pub(super) struct Item {
    pub(super) attributes: Vec<Attribute>,
    pub(super) visibility: Visibility,
    pub(super) signature: Signature,
    pub(super) body: TokenStream,
}

/// What the attribute stands on instead of a function.
pub(super) enum NotAFunction {
    /// Something else: the item, and the error.
    Foreign(TokenStream, syn::Error),
    /// A function that the compiler does not understand either.
    Broken(TokenStream),
}

struct Head {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    signature: Signature,
}

impl Parse for Head {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self {
            attributes: input.call(Attribute::parse_outer)?,
            visibility: input.parse()?,
            signature: input.parse()?,
        })
    }
}

/// Takes the item apart.
pub(super) fn item(tokens: TokenStream) -> Result<Item, NotAFunction> {
    let tokens = ungroup(tokens);
    let (before, body) = cut(tokens.clone());
    let Ok(head) = syn::parse2::<Head>(before.clone()) else {
        return Err(if is_function(&before) {
            NotAFunction::Broken(tokens)
        } else {
            let error = syn::Error::new_spanned(
                first_after_attributes(&before),
                "`#[tool]` belongs on a function\nhelp: write the tool as a function and put \
                 `#[tool]` on it",
            );
            NotAFunction::Foreign(tokens, error)
        });
    };
    let Some(body) = body else {
        // Only traits and `extern` blocks have functions without a body.
        let error = syn::Error::new_spanned(
            &head.signature.ident,
            "a tool needs a body\nhelp: put `#[tool]` on a function that has one",
        );
        return Err(NotAFunction::Foreign(tokens, error));
    };
    Ok(Item {
        attributes: head.attributes,
        visibility: head.visibility,
        signature: head.signature,
        body,
    })
}

/// Removes the invisible group that a `macro_rules!` fragment comes in.
fn ungroup(tokens: TokenStream) -> TokenStream {
    let mut trees = tokens.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => {
            ungroup(group.stream())
        }
        _ => tokens,
    }
}

/// Cuts the body off: it is the last group in braces.
fn cut(tokens: TokenStream) -> (TokenStream, Option<TokenStream>) {
    let mut trees: Vec<_> = tokens.into_iter().collect();
    let is_body = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => match group.delimiter() {
            Delimiter::Brace => true,
            Delimiter::None => {
                let inner = ungroup(group.stream()).into_iter().next();
                matches!(inner, Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace)
            }
            _ => false,
        },
        _ => false,
    };
    match trees.last() {
        Some(last) if is_body(last) => {
            let body = trees.pop().map(TokenStream::from);
            (trees.into_iter().collect(), body)
        }
        Some(TokenTree::Punct(semicolon)) if semicolon.as_char() == ';' => {
            trees.pop();
            (trees.into_iter().collect(), None)
        }
        _ => (trees.into_iter().collect(), None),
    }
}

/// Whether the tokens up to the name are those of a function.
fn is_function(before: &TokenStream) -> bool {
    let before_name = |input: ParseStream<'_>| {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        input.parse::<Option<Token![const]>>()?;
        input.parse::<Option<Token![async]>>()?;
        input.parse::<Option<Token![unsafe]>>()?;
        input.parse::<Option<syn::Abi>>()?;
        let found = input.peek(Token![fn]);
        input.parse::<TokenStream>()?;
        Ok(found)
    };
    before_name.parse2(before.clone()).unwrap_or(false)
}

fn first_after_attributes(tokens: &TokenStream) -> TokenStream {
    let after = |input: ParseStream<'_>| {
        input.call(Attribute::parse_outer)?;
        let first: Option<TokenTree> = input.parse().ok();
        input.parse::<TokenStream>()?;
        Ok(first.map(TokenStream::from))
    };
    after
        .parse2(tokens.clone())
        .ok()
        .flatten()
        .unwrap_or_else(|| tokens.clone())
}
