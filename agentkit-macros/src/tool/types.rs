//! What has to be known of a type by its spelling: lifetimes, since a field has none to borrow
//! from, and `impl Trait`, since it cannot be named.
//!
//! Everything else about types is left to the compiler.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::{Ident, Lifetime, Type, TypeReference};

/// The type inside of parentheses and of the invisible groups of `macro_rules!`.
pub(super) fn peel(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peel(&group.elem),
        Type::Paren(paren) => peel(&paren.elem),
        other => other,
    }
}

/// The type's reference, if it is one.
pub(super) fn reference(ty: &Type) -> Option<&TypeReference> {
    match peel(ty) {
        Type::Reference(reference) => Some(reference),
        _ => None,
    }
}

/// The first `impl` in the type.
pub(super) fn impl_trait(ty: &Type) -> Option<TokenStream> {
    if let Type::ImplTrait(found) = peel(ty) {
        return Some(found.to_token_stream());
    }
    first(ty.to_token_stream(), &|trees, at| match trees.get(at) {
        Some(TokenTree::Ident(ident)) if ident == "impl" => Some(ident.to_token_stream()),
        _ => None,
    })
}

/// The first `&` in the type that is not part of a function pointer or trait object.
pub(super) fn nested_reference(ty: &Type) -> Option<TokenStream> {
    first(ty.to_token_stream(), &|trees, at| match trees.get(at) {
        Some(TokenTree::Punct(and)) if and.as_char() == '&' => {
            Some(trees.iter().skip(at).take(2).cloned().collect())
        }
        _ => None,
    })
}

/// The first lifetime in the type that is neither `'static` nor bound by a `for<…>` of its own.
pub(super) fn named_lifetime(ty: &Type) -> Option<Lifetime> {
    lifetimes(ty.to_token_stream())
        .into_iter()
        .find(|lifetime| lifetime.ident != "static")
}

fn lifetimes(tokens: TokenStream) -> Vec<Lifetime> {
    let mut found = Vec::new();
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => found.extend(lifetimes(group.stream())),
            TokenTree::Punct(quote) if quote.as_char() == '\'' => {
                if let Some(TokenTree::Ident(ident)) = trees.peek() {
                    found.push(Lifetime {
                        apostrophe: quote.span(),
                        ident: ident.clone(),
                    });
                }
            }
            _ => {}
        }
    }
    found
}

fn first(
    tokens: TokenStream,
    wanted: &dyn Fn(&[TokenTree], usize) -> Option<TokenStream>,
) -> Option<TokenStream> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    trees.iter().enumerate().find_map(|(at, tree)| {
        wanted(&trees, at).or_else(|| match tree {
            TokenTree::Group(group) => first(group.stream(), wanted),
            _ => None,
        })
    })
}

/// The type with every lifetime replaced by `'static`: a field owns what it holds.
pub(super) fn owned(ty: &Type) -> Type {
    let tokens = with_static(ty.to_token_stream());
    syn::parse2(tokens).unwrap_or_else(|_| ty.clone())
}

fn with_static(tokens: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut after_quote = false;
    for tree in tokens {
        let tree = match tree {
            TokenTree::Group(group) => {
                let mut replaced =
                    proc_macro2::Group::new(group.delimiter(), with_static(group.stream()));
                replaced.set_span(group.span());
                TokenTree::Group(replaced)
            }
            TokenTree::Ident(ident) if after_quote => {
                TokenTree::Ident(Ident::new("static", ident.span()))
            }
            other => other,
        };
        after_quote = matches!(&tree, TokenTree::Punct(quote) if quote.as_char() == '\'');
        out.extend([tree]);
    }
    out
}

/// What to write instead of a borrowed type, for help texts.
pub(super) fn suggestion(reference: &TypeReference) -> String {
    match peel(&reference.elem) {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", text(&slice.elem)),
        other => text(other),
    }
}

/// A type as people write it.
pub(super) fn text(ty: &Type) -> String {
    ty.to_token_stream()
        .to_string()
        .replace(" < ", "<")
        .replace(" >", ">")
        .replace(" :: ", "::")
        .replace(" ,", ",")
        .replace("& ", "&")
}

/// A path to the type `Never`.
pub(super) fn never(root: &TokenStream) -> TokenStream {
    quote!(#root::__private::Never)
}
