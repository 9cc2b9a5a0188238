//! `#[tool]`.

mod generate;
mod methods;
mod model;
mod normalise;
mod options;
mod parameters;
mod parse;
mod types;

use proc_macro2::TokenStream;
use quote::quote;

use crate::problems::Problems;

pub(crate) use methods::expand as expand_methods;

/// Expands the attribute.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    let item = match parse::item(item) {
        Ok(item) => item,
        Err(parse::NotAFunction::Foreign(item, error)) => {
            problems.push(error);
            let errors = problems.into_compile_errors();
            return quote!(#item #errors);
        }
        // The compiler says what is wrong with a function that does not parse.
        Err(parse::NotAFunction::Broken(item)) => return item,
    };
    let function = generate::function(&item);
    // Without its `impl` block a method is emitted alone: there neither a type nor an
    // `impl` can stand beside it.
    let in_impl = item.signature.receiver().is_some();
    let options = options::read(options, &mut problems);
    let model = normalise::model(&item, &options, None, &mut problems);
    if problems.is_empty() {
        let tool = generate::tool(&model);
        return quote!(#function #tool);
    }
    let stub = if in_impl {
        TokenStream::new()
    } else {
        generate::stub(&model)
    };
    let errors = problems.into_compile_errors();
    quote!(#function #stub #errors)
}

#[cfg(test)]
mod tests;
