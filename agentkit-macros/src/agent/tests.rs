#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests may")]

use proc_macro2::TokenStream;
use quote::quote;

use super::normalise;
use crate::problems::Problems;

fn problems(attribute: TokenStream) -> Vec<String> {
    let mut problems = Problems::default();
    let item = syn::parse2(quote!(
        pub struct Desk;
    ))
    .unwrap();
    normalise::model(&item, attribute, &mut problems);
    problems.texts()
}

#[test]
fn everything_that_is_missing_is_said_at_once() {
    assert_eq!(problems(quote!()).len(), 3);
    let fine = quote!(
        name = "desk",
        model = "a/b",
        instructions = TEXT,
        tools = [a, b::c as D]
    );
    assert_eq!(problems(fine), [""; 0]);
}

#[test]
fn two_tools_with_one_variant_need_an_alias() {
    let found = problems(quote!(
        name = "desk",
        model = "a/b",
        instructions = "",
        tools = [a::find, b::find]
    ));
    assert!(found[0].contains("`b::find as AnotherName`"), "{found:?}");
}

#[test]
fn expansion_never_panics_on_strange_input() {
    for (attribute, item) in [
        (quote!(tools), quote!()),
        (quote!(tools = [,,]), quote!(struct S)),
        (
            quote!(tools = [1, self]),
            quote!(
                struct S;
            ),
        ),
        (quote!(policy = 1, policies = 2), quote!(union U {})),
    ] {
        super::expand(attribute, item);
    }
}
