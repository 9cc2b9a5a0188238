//! The list in the parentheses of an attribute: `key`, `key = value`, `key(…)`.
//!
//! It is cut at its commas first, so that a mistake in one entry does not hide the others.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Ident, ext::IdentExt as _, parse::Parse};

use crate::{name::nearest, problems::Problems};

/// One entry of the list.
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: Ident,
    /// What follows the key.
    pub(crate) value: EntryValue,
}

/// What follows a key.
pub(crate) enum EntryValue {
    /// Nothing.
    None,
    /// The tokens after `=`.
    Assigned(TokenStream),
    /// The tokens in parentheses.
    List(TokenStream),
}

impl ToTokens for Entry {
    /// The whole entry, for spans.
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.key.to_tokens(tokens);
        match &self.value {
            EntryValue::None => {}
            EntryValue::Assigned(value) | EntryValue::List(value) => value.to_tokens(tokens),
        }
    }
}

/// The entries of a list whose keys must be among `allowed`, each at most once.
pub(crate) fn entries(
    list: TokenStream,
    attribute: &str,
    allowed: &[&str],
    problems: &mut Problems,
) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for tokens in split(list) {
        let Some(entry) = entry(tokens, problems) else {
            continue;
        };
        let key = entry.key.unraw().to_string();
        if !allowed.contains(&key.as_str()) {
            let known = allowed
                .iter()
                .map(|key| format!("`{key}`"))
                .collect::<Vec<_>>()
                .join(", ");
            let help = match nearest(&key, allowed) {
                Some(near) => format!("did you mean `{near}`? the keys are {known}"),
                None => format!("the keys are {known}"),
            };
            problems.add(
                &entry.key,
                &format!("`{attribute}` has no key `{key}`"),
                &help,
            );
        } else if entries.iter().any(|earlier| earlier.key == entry.key) {
            problems.add(
                &entry.key,
                &format!("the key `{key}` stands here twice"),
                "write it once",
            );
        } else {
            entries.push(entry);
        }
    }
    entries
}

/// Cuts a list at its commas.
pub(crate) fn split(list: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    // Commas between `<` and `>` separate generic arguments.
    let mut angles = 0_usize;
    let mut previous = ' ';
    for token in list {
        let mut current = ' ';
        if let TokenTree::Punct(punct) = &token {
            current = punct.as_char();
            match current {
                '<' => angles += 1,
                '>' if previous != '-' && previous != '=' => angles = angles.saturating_sub(1),
                ',' if angles == 0 => {
                    parts.push(TokenStream::new());
                    previous = current;
                    continue;
                }
                _ => {}
            }
        }
        previous = current;
        if let Some(part) = parts.last_mut() {
            part.extend([token]);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn entry(tokens: TokenStream, problems: &mut Problems) -> Option<Entry> {
    let mut rest = tokens.clone().into_iter();
    let Some(TokenTree::Ident(key)) = rest.next() else {
        problems.add(
            tokens,
            "expected a key",
            "entries are `key`, `key = value` or `key(…)`",
        );
        return None;
    };
    let value = match rest.next() {
        None => EntryValue::None,
        Some(TokenTree::Punct(punct)) if punct.as_char() == '=' => {
            let value: TokenStream = rest.collect();
            if value.is_empty() {
                problems.at(
                    punct.span(),
                    &format!("`{key} =` has no value"),
                    "write the value after the `=`",
                );
                return None;
            }
            EntryValue::Assigned(value)
        }
        Some(TokenTree::Group(group))
            if group.delimiter() == Delimiter::Parenthesis && rest.next().is_none() =>
        {
            EntryValue::List(group.stream())
        }
        Some(other) => {
            problems.add(
                other,
                &format!("unexpected after `{key}`"),
                "entries are `key`, `key = value` or `key(…)`, with commas between them",
            );
            return None;
        }
    };
    Some(Entry { key, value })
}

impl Entry {
    /// The value as a `T`; a problem if it is none, or missing.
    pub(crate) fn value<T: Parse>(&self, expected: &str, problems: &mut Problems) -> Option<T> {
        let EntryValue::Assigned(value) = &self.value else {
            let key = &self.key;
            problems.add(
                self,
                &format!("`{key}` needs a value"),
                &format!("write `{key} = {expected}`"),
            );
            return None;
        };
        match syn::parse2(value.clone()) {
            Ok(value) => Some(value),
            Err(_) => {
                problems.add(
                    value,
                    &format!("`{value}` is no value for `{}`", self.key),
                    &format!("write `{} = {expected}`", self.key),
                );
                None
            }
        }
    }

    /// Whether the flag is set: `key`, `key = true`, `key = false`.
    pub(crate) fn flag(&self, problems: &mut Problems) -> bool {
        match &self.value {
            EntryValue::None => true,
            EntryValue::Assigned(_) => self
                .value::<syn::LitBool>("true", problems)
                .is_none_or(|flag| flag.value),
            EntryValue::List(list) => {
                problems.add(
                    list,
                    &format!("`{}` takes no list", self.key),
                    &format!("write `{}` alone", self.key),
                );
                true
            }
        }
    }
}

/// The path to the `agentkit` crate: `crate = ::path`, or `::agentkit`.
pub(crate) fn root(entry: Option<&Entry>, problems: &mut Problems) -> TokenStream {
    let default = quote::quote_spanned!(Span::call_site() => ::agentkit);
    let Some(entry) = entry else { return default };
    let Some(path) = entry.value::<syn::Path>("::path::to::agentkit", problems) else {
        return default;
    };
    let absolute = path.leading_colon.is_some()
        || path
            .segments
            .first()
            .is_some_and(|first| first.ident == "crate");
    if absolute {
        path.into_token_stream()
    } else {
        let written = path.to_token_stream().to_string().replace(' ', "");
        problems.add(
            &path,
            "the path to `agentkit` must be absolute, since it is used in every scope",
            &format!("write `crate = ::{written}` or `crate = crate::{written}`"),
        );
        default
    }
}
