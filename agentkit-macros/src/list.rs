//! `tools![a, #[cfg(x)] b::c]`.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{
    Attribute, Path, Token,
    parse::{Parse, ParseStream},
    spanned::Spanned as _,
};

use crate::{located, options::split, problems::Problems};

/// One tool or agent of a list.
pub(crate) struct ListedTool {
    /// `#[cfg(…)]`, if it is there under conditions.
    pub(crate) conditions: Vec<Attribute>,
    /// The type of the tool or agent.
    pub(crate) path: Path,
    /// What the variants of the generated enums are called, if it is said with `as`.
    pub(crate) alias: Option<syn::Ident>,
}

impl Parse for ListedTool {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let conditions = input.call(Attribute::parse_outer)?;
        let path = input.call(Path::parse_mod_style)?;
        let alias = input
            .parse::<Option<Token![as]>>()?
            .map(|_| input.parse())
            .transpose()?;
        Ok(Self {
            conditions,
            path,
            alias,
        })
    }
}

/// The tools of a list; each path may be there once.
pub(crate) fn tools(list: TokenStream, problems: &mut Problems) -> Vec<ListedTool> {
    let example = "name the tool's function, such as `issue_refund` or `orders::issue_refund`";
    entries(list, ("tool", example), problems)
}

/// The agents of a list; each path may be there once.
pub(crate) fn agents(list: TokenStream, problems: &mut Problems) -> Vec<ListedTool> {
    let example = "name the agent's struct, such as `DataAgent` or `agents::DataAgent`";
    entries(list, ("agent", example), problems)
}

fn entries(
    list: TokenStream,
    (what, example): (&str, &str),
    problems: &mut Problems,
) -> Vec<ListedTool> {
    let mut seen = BTreeSet::new();
    let mut tools = Vec::new();
    for tokens in split(list) {
        let tool: ListedTool = match syn::parse2(tokens.clone()) {
            Ok(tool) => tool,
            Err(_) => {
                problems.add(
                    tokens,
                    &format!("this is no path to {} {what}", article(what)),
                    example,
                );
                continue;
            }
        };
        for attribute in &tool.conditions {
            if !attribute.path().is_ident("cfg") {
                problems.add(
                    attribute,
                    &format!(
                        "only `#[cfg(…)]` is allowed on {} {what} in a list",
                        article(what)
                    ),
                    &format!("put other attributes where the {what} is declared"),
                );
            }
        }
        let written = tool.path.to_token_stream().to_string();
        // Under conditions the same tool may well be written twice.
        if tool.conditions.is_empty() && !seen.insert(written.clone()) {
            let written = written.replace(' ', "");
            problems.add(
                &tool.path,
                &format!("the {what} `{written}` is in the list twice"),
                "remove one of the two",
            );
            continue;
        }
        tools.push(tool);
    }
    tools
}

fn article(what: &str) -> &'static str {
    if what.starts_with('a') { "an" } else { "a" }
}

/// An expression: the tools as a vector.
pub(crate) fn vector(root: &TokenStream, tools: &[ListedTool]) -> TokenStream {
    let list = syn::Ident::new("list", Span::mixed_site());
    let pushes = tools.iter().map(|tool| {
        let conditions = &tool.conditions;
        let tool = tool.of_tool(root, &quote!(tool()));
        quote!(#(#conditions)* #list.push(#tool);)
    });
    let names = names(root, tools);
    quote!({
        const _: () = #root::__private::distinct(#names);
        #[allow(unused_mut)]
        let mut #list = #root::__private::no_tools();
        #(#pushes)*
        #list
    })
}

/// An expression: the names of the tools, as `&[&str]`.
fn names(root: &TokenStream, tools: &[ListedTool]) -> TokenStream {
    let names = tools.iter().map(|tool| {
        let conditions = &tool.conditions;
        let name = tool.of_tool(root, &quote!(NAME));
        quote!(#(#conditions)* #name)
    });
    quote!(&[#(#names),*])
}

impl ListedTool {
    /// `<T as Listed>::item` for a tool `T`, all of it where the entry is written. What
    /// is needed of an entry is said in this form only: the errors of one that is no tool are
    /// equal then, and are printed once.
    pub(crate) fn of_tool(&self, root: &TokenStream, item: &TokenStream) -> TokenStream {
        let (path, span) = (&self.path, self.path.span());
        let (root, item) = (
            located::as_written(root, span),
            located::as_written(item, span),
        );
        quote_spanned!(span=> <#path as #root::__private::Listed>::#item)
    }

    /// The same of an agent: `<A as Agent>::item`.
    pub(crate) fn of_agent(&self, root: &TokenStream, item: &TokenStream) -> TokenStream {
        let (path, span) = (&self.path, self.path.span());
        let (root, item) = (
            located::as_written(root, span),
            located::as_written(item, span),
        );
        quote_spanned!(span=> <#path as #root::__private::Agent>::#item)
    }
}

pub(crate) fn expand(list: TokenStream) -> TokenStream {
    let mut problems = Problems::default();
    let root = quote!(::agentkit);
    let tools = tools(list, &mut problems);
    let vector = vector(&root, &tools);
    let errors = problems.into_compile_errors();
    if errors.is_empty() {
        vector
    } else {
        quote!({ #errors #vector })
    }
}
