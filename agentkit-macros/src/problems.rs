//! Collects everything that is wrong with one declaration.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The problems found so far, in order.
#[derive(Default)]
pub(crate) struct Problems(Option<syn::Error>);

impl Problems {
    /// Adds a problem with `tokens`, and what to do about it.
    pub(crate) fn add(&mut self, tokens: impl ToTokens, message: &str, help: &str) {
        self.push(syn::Error::new_spanned(tokens, text(message, help)));
    }

    /// Adds a problem at `span`, and what to do about it.
    pub(crate) fn at(&mut self, span: Span, message: &str, help: &str) {
        self.push(syn::Error::new(span, text(message, help)));
    }

    /// Adds an error of the parser.
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The problems as compile errors; nothing if there is none.
    pub(crate) fn into_compile_errors(self) -> TokenStream {
        self.0
            .map(syn::Error::into_compile_error)
            .unwrap_or_default()
    }

    /// The texts of the problems.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0
            .iter()
            .flat_map(Clone::clone)
            .map(|error| error.to_string())
            .collect()
    }
}

fn text(message: &str, help: &str) -> String {
    format!("{message}\nhelp: {help}")
}
