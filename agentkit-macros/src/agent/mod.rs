//! `#[agent]`.

mod defaults;
mod generate;
mod model;
mod normalise;
mod variants;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Item};

use crate::problems::Problems;

/// Expands the attribute.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    // The compiler says what is wrong with an item that does not parse.
    let Ok(mut parsed) = syn::parse2::<Item>(item.clone()) else {
        return item;
    };
    let Item::Struct(declared) = &mut parsed else {
        let keyword = keyword(&parsed, &item);
        problems.add(
            keyword,
            "`#[agent]` belongs on a struct",
            "write `pub struct Name;`; what the agent needs at run time goes to its builder",
        );
        let errors = problems.into_compile_errors();
        return quote!(#item #errors);
    };
    for attribute in declared
        .attrs
        .extract_if(.., |attribute| is_agent(attribute))
    {
        problems.add(
            attribute,
            "the struct is an agent already",
            "put one `#[agent]` on one struct",
        );
    }
    let model = normalise::model(declared, options, &mut problems);
    let generated = if problems.is_empty() {
        generate::agent(&model)
    } else {
        generate::stub(&model)
    };
    let errors = problems.into_compile_errors();
    quote!(#declared #generated #errors)
}

fn is_agent(attribute: &Attribute) -> bool {
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|last| last.ident == "agent")
}

/// What to point at on an item that is no struct.
fn keyword(item: &Item, tokens: &TokenStream) -> TokenStream {
    match item {
        Item::Enum(item) => {
            let keyword = item.enum_token;
            quote!(#keyword)
        }
        Item::Union(item) => {
            let keyword = item.union_token;
            quote!(#keyword)
        }
        Item::Fn(item) => {
            let keyword = item.sig.fn_token;
            quote!(#keyword)
        }
        _ => tokens.clone(),
    }
}

#[cfg(test)]
mod tests;
