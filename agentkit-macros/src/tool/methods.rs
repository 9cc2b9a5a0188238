//! `#[tools]` on an `impl` block: its methods with `#[tool]` become tools that share the value.

use proc_macro2::{Delimiter, Group, Ident, Spacing, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::{
    Attribute, Generics, Meta, Token, Type,
    parse::{Parse, ParseStream, Parser as _},
};

use super::{generate, normalise, options, parse};
use crate::problems::Problems;

/// What stands before the braces of an `impl` block.
struct Head {
    attributes: Vec<Attribute>,
    generics: Generics,
    /// `Trait for`, if it is a trait that is implemented.
    of_trait: Option<TokenStream>,
    owner: Type,
}

impl Parse for Head {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        input.parse::<Token![impl]>()?;
        let mut generics: Generics = if input.peek(Token![<]) {
            input.parse()?
        } else {
            Generics::default()
        };
        let mut owner: Type = input.parse()?;
        let mut of_trait = None;
        if input.peek(Token![for]) {
            of_trait = Some(owner.to_token_stream());
            input.parse::<Token![for]>()?;
            owner = input.parse()?;
        }
        generics.where_clause = input.parse()?;
        Ok(Self {
            attributes,
            generics,
            of_trait,
            owner,
        })
    }
}

/// Expands the attribute.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    if !options.is_empty() {
        problems.add(
            options,
            "`#[tools]` takes nothing",
            "what is said of one tool stands in the `#[tool(…)]` of its method",
        );
    }
    let mut before: Vec<TokenTree> = item.clone().into_iter().collect();
    let body = match before.pop() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => group,
        _ => return foreign(item, problems),
    };
    let Ok(head) = syn::parse2::<Head>(before.iter().cloned().collect()) else {
        return foreign(item, problems);
    };
    check(&head, &mut problems);
    let owner = (head.of_trait.is_none() && head.generics.params.is_empty()).then_some(&head.owner);
    let conditions: Vec<_> = head
        .attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .collect();

    let mut members = TokenStream::new();
    let mut tools = TokenStream::new();
    let mut found = false;
    for member in split(body.stream()) {
        let Some((options, method)) = tool(&member) else {
            members.extend(member);
            continue;
        };
        found = true;
        expand_method(
            &options,
            method,
            owner,
            &conditions,
            &mut members,
            &mut tools,
        );
    }
    if !found {
        problems.at(
            body.span(),
            "no method of this `impl` block is a tool",
            "put `#[tool]` on the methods that models may call",
        );
    }
    let mut braces = Group::new(Delimiter::Brace, members);
    braces.set_span(body.span());
    let before: TokenStream = before.into_iter().collect();
    let errors = problems.into_compile_errors();
    quote!(#before #braces #tools #errors)
}

fn expand_method(
    options: &TokenStream,
    method: TokenStream,
    owner: Option<&Type>,
    conditions: &[&Attribute],
    members: &mut TokenStream,
    tools: &mut TokenStream,
) {
    let mut problems = Problems::default();
    match parse::item(method) {
        Ok(item) => {
            members.extend(generate::function(&item));
            // What is wrong with the block is said once, and no method is looked at.
            let Some(owner) = owner else { return };
            let options = options::read(named(options.clone(), owner), &mut problems);
            let item = parse::Item {
                attributes: item.attributes,
                visibility: item.visibility,
                signature: parsed(&item.signature, owner),
                body: TokenStream::new(),
            };
            let model = normalise::model(&item, &options, Some(owner), &mut problems);
            let tool = if problems.is_empty() {
                generate::tool(&model)
            } else {
                generate::stub(&model)
            };
            tools.extend(under(conditions, tool));
        }
        Err(parse::NotAFunction::Foreign(item, error)) => {
            members.extend(item);
            problems.push(error);
        }
        Err(parse::NotAFunction::Broken(item)) => members.extend(item),
    }
    tools.extend(problems.into_compile_errors());
}

/// The generated items, each under the conditions of the block.
fn under(conditions: &[&Attribute], items: TokenStream) -> TokenStream {
    if conditions.is_empty() {
        return items;
    }
    match syn::parse2::<syn::File>(items.clone()) {
        Ok(file) => file
            .items
            .iter()
            .map(|item| quote!(#(#conditions)* #item))
            .collect(),
        Err(_) => items,
    }
}

/// What is no `impl` block is emitted as it is.
fn foreign(item: &TokenStream, mut problems: Problems) -> TokenStream {
    let is_impl = item
        .clone()
        .into_iter()
        .any(|tree| matches!(tree, TokenTree::Ident(ident) if ident == "impl"));
    // The compiler says what is wrong with an `impl` block that does not parse.
    if !is_impl {
        problems.at(
            proc_macro2::Span::call_site(),
            "`#[tools]` belongs on an `impl` block",
            "put `#[tool]` on a free function; `#[tools]` is for methods that share their state",
        );
    }
    let errors = problems.into_compile_errors();
    quote!(#item #errors)
}

fn check(head: &Head, problems: &mut Problems) {
    if let Some(of_trait) = &head.of_trait {
        problems.add(
            of_trait,
            "the methods of a trait cannot be tools",
            "write an `impl` block of the type itself, whose methods call those of the trait",
        );
    }
    if !head.generics.params.is_empty() {
        problems.add(
            &head.generics.params,
            "a tool cannot be generic: a model calls it without naming types",
            "write the `impl` block of one concrete type, such as `impl Shop<Database>`",
        );
    }
}

/// Cuts the inside of an `impl` block into its members, without looking into any body.
fn split(tokens: TokenStream) -> Vec<TokenStream> {
    let mut members = Vec::new();
    let mut member = TokenStream::new();
    let mut angles = 0_usize;
    let mut is_function = false;
    let mut previous = ' ';
    for tree in tokens {
        let mut ends = false;
        let mut current = ' ';
        match &tree {
            TokenTree::Ident(ident) if ident == "fn" && angles == 0 => is_function = true,
            TokenTree::Punct(punct) => {
                current = punct.as_char();
                match current {
                    '<' => angles += 1,
                    '>' if previous != '-' && previous != '=' => angles = angles.saturating_sub(1),
                    ';' => ends = true,
                    _ => {}
                }
            }
            // Braces in angle brackets are a constant argument, and those of `const X: T = { … };`
            // are followed by a semicolon.
            TokenTree::Group(group) => {
                ends = group.delimiter() == Delimiter::Brace && angles == 0 && is_function;
            }
            _ => {}
        }
        previous = current;
        member.extend([tree]);
        if ends {
            members.push(std::mem::take(&mut member));
            (angles, is_function) = (0, false);
        }
    }
    members.push(member);
    members
}

/// The options of `#[tool]` and the method without it, if the member has it.
fn tool(member: &TokenStream) -> Option<(TokenStream, TokenStream)> {
    let split = |input: ParseStream<'_>| {
        Ok((
            input.call(Attribute::parse_outer)?,
            input.parse::<TokenStream>()?,
        ))
    };
    let (mut attributes, rest) = split.parse2(member.clone()).ok()?;
    let at = attributes.iter().position(|attribute| {
        let last = attribute.path().segments.last();
        last.is_some_and(|last| last.ident == "tool")
    })?;
    let options = match attributes.remove(at).meta {
        Meta::List(list) => list.tokens,
        _ => TokenStream::new(),
    };
    Some((options, quote!(#(#attributes)* #rest)))
}

fn parsed(signature: &syn::Signature, owner: &Type) -> syn::Signature {
    let mut signature = signature.clone();
    for input in &mut signature.inputs {
        if let syn::FnArg::Typed(typed) = input
            && let Ok(replaced) = syn::parse2(named(typed.to_token_stream(), owner))
        {
            *input = replaced;
        }
    }
    if let syn::ReturnType::Type(_, ty) = &mut signature.output
        && let Ok(replaced) = syn::parse2(named(ty.to_token_stream(), owner))
    {
        **ty = replaced;
    }
    signature
}

/// The tokens with `Self` as what it stands for: outside of the block it has no meaning.
fn named(tokens: TokenStream, owner: &Type) -> TokenStream {
    let mut trees = tokens.into_iter().peekable();
    let mut out = TokenStream::new();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), named(group.stream(), owner));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            TokenTree::Ident(ident) if ident == "Self" => {
                let path = matches!(
                    trees.peek(),
                    Some(TokenTree::Punct(colon))
                        if colon.as_char() == ':' && colon.spacing() == Spacing::Joint
                );
                out.extend(spanned(owner, &ident, path));
            }
            other => out.extend([other]),
        }
    }
    out
}

fn spanned(owner: &Type, at: &Ident, path: bool) -> TokenStream {
    let span = at.span();
    let owner: TokenStream = owner
        .to_token_stream()
        .into_iter()
        .map(|mut tree| {
            tree.set_span(span.located_at(span).resolved_at(tree.span()));
            tree
        })
        .collect();
    if path {
        quote::quote_spanned!(span=> <#owner>)
    } else {
        owner
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use super::*;

    #[test]
    fn members_are_cut_without_parsing_bodies() {
        let members = split(quote! {
            const X: usize = { 3 };
            #[tool]
            fn f(&self, a: [u8; { 3 }]) -> Array<{ 3 }> where u8: Copy { let = + ; match }
            pub async fn g() {}
            type Y = u8;
        });
        let members: Vec<_> = members
            .into_iter()
            .filter(|tokens| !tokens.is_empty())
            .collect();
        assert_eq!(members.len(), 4, "{members:?}");
        let (options, method) = tool(members.get(1).unwrap()).unwrap();
        assert!(options.is_empty());
        assert!(method.to_string().starts_with("fn f"), "{method}");
        assert!(tool(members.get(2).unwrap()).is_none());
    }

    #[test]
    fn self_is_what_it_stands_for() {
        let owner: Type = syn::parse_quote!(Shop<u8>);
        let text = |tokens: TokenStream| tokens.to_string().replace(' ', "");
        let named = named(quote!(Vec<Self> (Self::Id)), &owner);
        assert_eq!(text(named), "Vec<Shop<u8>>(<Shop<u8>>::Id)");
    }

    #[test]
    fn expansion_never_panics_on_strange_input() {
        for item in [
            quote!(),
            quote!(
                struct S {}
            ),
            quote!(impl {}),
            quote!(impl X { #[tool] }),
            quote!(impl X { #[tool] const Y: u8 = 3; #[tool] fn f(&mut self, a u8) {} }),
            quote!(
                impl<T> Trait for X<T>
                where
                    T: Y,
                {
                    #[tool]
                    fn f(self) {}
                }
            ),
        ] {
            expand(quote!(x), &item);
        }
    }
}
