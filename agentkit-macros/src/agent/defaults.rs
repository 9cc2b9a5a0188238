//! What an agent declares for all its runs: keys, and the code that sets them.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::{Expr, Ident, Lit, LitInt, ext::IdentExt as _};

use crate::{
    options::{self, Entry, EntryValue},
    problems::Problems,
    ttl,
};

/// The keys of `#[agent]` that are defaults of runs.
pub(super) const KEYS: [&str; 6] = [
    "require_approval",
    "max_steps",
    "max_tokens",
    "max_time",
    "temperature",
    "max_output_tokens",
];

const APPROVAL_FORMS: &str =
    "write `require_approval`, or `require_approval(when = |call| Ok(call.tool == \"refund\"))`";

/// Statements that set what the entries say on the variable `defaults`.
pub(super) fn settings(
    root: &TokenStream,
    entries: &[Entry],
    defaults: &Ident,
    problems: &mut Problems,
) -> Vec<TokenStream> {
    let mut settings = Vec::new();
    for entry in entries {
        let key = entry.key.unraw();
        let value = match key.to_string().as_str() {
            "require_approval" => approval(root, entry, problems),
            "max_steps" | "max_output_tokens" => {
                count(entry, "16", problems).map(|value| some(&quote!(#value)))
            }
            "max_tokens" => count(entry, "100_000", problems).map(|value| some(&quote!(#value))),
            "max_time" => ttl::of(entry, "10m", problems)
                .map(|seconds| quote!(#root::__private::seconds(#seconds))),
            "temperature" => number(entry, problems).map(|value| some(&value)),
            _ => continue,
        };
        // The names of the keys are those of the fields. The statements are the macro's, so that
        // lints leave them alone; the values are the user's.
        let field = Ident::new(&key.to_string(), Span::call_site());
        settings.extend(value.map(|value| quote!(#defaults.#field = #value;)));
    }
    settings
}

fn some(value: &TokenStream) -> TokenStream {
    quote!(::core::option::Option::Some(#value))
}

fn approval(root: &TokenStream, entry: &Entry, problems: &mut Problems) -> Option<TokenStream> {
    let option = quote!(#root::__private::RequireApproval);
    match &entry.value {
        EntryValue::None => return Some(quote!(#option::On)),
        EntryValue::Assigned(value) => match syn::parse2(value.clone()) {
            Ok(Lit::Bool(flag)) if flag.value => return Some(quote!(#option::On)),
            Ok(Lit::Bool(_)) => return Some(quote!(#option::Off)),
            _ => {}
        },
        EntryValue::List(list) => {
            let entries = options::entries(list.clone(), "require_approval", &["when"], problems);
            let [when] = entries.as_slice() else {
                return None;
            };
            let predicate = when.value::<Expr>("|call| Ok(true)", problems)?;
            return Some(quote!(#option::when(#predicate)));
        }
    }
    problems.add(
        entry,
        "`require_approval` of an agent is a flag or a condition",
        APPROVAL_FORMS,
    );
    None
}

/// A number of at least 1, or any other expression.
fn count(entry: &Entry, example: &str, problems: &mut Problems) -> Option<TokenStream> {
    let value = entry.value::<Expr>(example, problems)?;
    let Expr::Lit(literal) = &value else {
        return Some(value.into_token_stream());
    };
    let counts = syn::parse2::<LitInt>(literal.to_token_stream())
        .ok()
        .and_then(|literal| literal.base10_parse::<u64>().ok())
        .is_some_and(|count| count > 0);
    if !counts {
        let key = &entry.key;
        problems.add(
            &value,
            &format!("`{key}` is a whole number, at least 1"),
            &format!("write `{key} = {example}`"),
        );
        return None;
    }
    Some(value.into_token_stream())
}

/// A number with or without a fraction, not below zero, or any other expression.
fn number(entry: &Entry, problems: &mut Problems) -> Option<TokenStream> {
    let value = entry.value::<Expr>("0.2", problems)?;
    match &value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Float(_) => return Some(value.into_token_stream()),
            Lit::Int(whole) if whole.suffix().is_empty() => {
                return whole
                    .base10_parse::<u32>()
                    .ok()
                    .map(|whole| f64::from(whole).into_token_stream());
            }
            _ => {}
        },
        Expr::Unary(_) => {}
        _ => return Some(value.into_token_stream()),
    }
    problems.add(
        &value,
        "`temperature` is a number, not below zero",
        "write `temperature = 0.2`",
    );
    None
}
