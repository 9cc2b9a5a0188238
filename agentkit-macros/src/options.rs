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
    for entry in any_entries(list, problems) {
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

/// The entries of a list, whatever their keys are.
pub(crate) fn any_entries(list: TokenStream, problems: &mut Problems) -> Vec<Entry> {
    split(list)
        .into_iter()
        .filter_map(|tokens| entry(tokens, problems))
        .collect()
}

/// The tokens inside of `key = […]`.
pub(crate) fn bracketed(
    entry: &Entry,
    example: &str,
    problems: &mut Problems,
) -> Option<TokenStream> {
    if let EntryValue::Assigned(value) = &entry.value {
        let mut trees = value.clone().into_iter();
        if let (Some(TokenTree::Group(group)), None) = (trees.next(), trees.next())
            && group.delimiter() == Delimiter::Bracket
        {
            return Some(group.stream());
        }
    }
    let key = &entry.key;
    problems.add(
        entry,
        &format!("`{key}` takes a list in brackets"),
        &format!("write `{key} = [{example}]`"),
    );
    None
}

/// Cuts a list at its commas.
pub(crate) fn split(list: TokenStream) -> Vec<TokenStream> {
    let trees: Vec<TokenTree> = list.into_iter().collect();
    let mut parts = vec![TokenStream::new()];
    // Commas between `<` and `>` separate generic arguments.
    let mut angles = 0_usize;
    for (at, token) in trees.iter().enumerate() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' && angles == 0 => {
                parts.push(TokenStream::new());
                continue;
            }
            TokenTree::Punct(punct)
                if punct.as_char() == '<' && (angles > 0 || opens(&trees, at)) =>
            {
                angles += 1;
            }
            TokenTree::Punct(punct) if punct.as_char() == '>' && !is_arrow(&trees, at) => {
                angles = angles.saturating_sub(1);
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.extend([token.clone()]);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether the `<` opens generic arguments, and is no comparison as in `|args| args.cents < 5`:
/// it is closed, and no closure begins before that.
fn opens(trees: &[TokenTree], at: usize) -> bool {
    let mut angles = 0_usize;
    for (at, tree) in trees.iter().enumerate().skip(at) {
        let TokenTree::Punct(punct) = tree else {
            continue;
        };
        match punct.as_char() {
            '<' => angles += 1,
            '>' if is_arrow(trees, at) => {}
            '>' if angles == 1 => return true,
            '>' => angles -= 1,
            '|' => return false,
            _ => {}
        }
    }
    false
}

/// Whether the `>` belongs to `->` or `=>`.
fn is_arrow(trees: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| trees.get(before));
    matches!(before, Some(TokenTree::Punct(punct)) if matches!(punct.as_char(), '-' | '='))
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

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use super::split;

    fn parts(list: TokenStream) -> usize {
        split(list).len()
    }

    #[test]
    fn commas_of_generics_and_groups_do_not_separate() {
        assert_eq!(parts(quote!(a = Map<K, V>, b = (1, 2), c)), 3);
        assert_eq!(parts(quote!(a = Map<K, fn(u8) -> Vec<V>>, b)), 2);
        assert_eq!(parts(quote!()), 0);
    }

    #[test]
    fn comparisons_are_no_generics() {
        assert_eq!(parts(quote!(when = |args| args.cents < 5, ttl = "1h")), 2);
        assert_eq!(parts(quote!(when = |args| args.cents > 5, ttl = "1h")), 2);
        assert_eq!(parts(quote!(a = |x| x.n < 3, b = |x| x.n > 4, c)), 3);
        assert_eq!(parts(quote!(a = |x| x.n <= 3, b = Map<K, V>)), 2);
    }
}
