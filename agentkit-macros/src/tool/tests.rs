#![allow(clippy::unwrap_used, reason = "tests may")]

use proc_macro2::TokenStream;
use quote::quote;

use super::{normalise, options, parse};
use crate::problems::Problems;

/// The problems of a declaration, by their first lines.
fn problems(attribute: TokenStream, item: TokenStream) -> Vec<String> {
    let mut problems = Problems::default();
    let Ok(item) = parse::item(item) else {
        return vec!["no function".to_owned()];
    };
    let options = options::read(attribute, &mut problems);
    normalise::model(&item, &options, None, &mut problems);
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    problems.texts().into_iter().map(first).collect()
}

#[test]
fn the_body_is_not_parsed() {
    let item = quote!(
        fn f(a: u8) -> Vec<{ 3 }> { let = + ; match }
    );
    let item = parse::item(item).ok().unwrap();
    assert_eq!(item.signature.ident, "f");
    assert_eq!(item.body.to_string(), "{ let = + ; match }");
}

#[test]
fn a_broken_signature_is_left_to_the_compiler() {
    let item = quote!(
        fn f(a u8) {}
    );
    assert!(matches!(
        parse::item(item),
        Err(parse::NotAFunction::Broken(_))
    ));
    let item = quote!(
        struct S;
    );
    assert!(matches!(
        parse::item(item),
        Err(parse::NotAFunction::Foreign(..))
    ));
}

#[test]
fn one_mistake_does_not_hide_another() {
    let found = problems(
        quote!(bogus, name = "a b", require_approval(ttl = "soon")),
        quote!(
            unsafe fn f<T>((a, b): (u8, T), c: impl Copy, d: &'static str) {}
        ),
    );
    assert_eq!(found.len(), 8, "{found:#?}");
}

#[test]
fn a_fine_declaration_has_no_problems() {
    let found = problems(
        quote!(
            require_approval(ttl = "24h", quorum = 2),
            suspend = Map<A, B>,
            resume = C,
            crate = ::x::y
        ),
        quote!(
            pub async fn f<'a>(mut a: &'a str, #[ctx] b: &B, #[resume] c: Option<C>) -> D {}
        ),
    );
    assert_eq!(found, [""; 0]);
}

#[test]
fn expansion_never_panics_on_strange_input() {
    for (attribute, item) in [
        (quote!(=), quote!()),
        (quote!(,,), quote!(fn)),
        (quote!(name =), quote!(fn f())),
        (
            quote!(name name),
            quote!(
                fn f();
            ),
        ),
        (quote!(require_approval(require_approval(()))), quote!({})),
        (
            quote!(type = 3, crate = 4),
            quote!(fn f(#[arg] a: u8, #[arg()] self) {}),
        ),
    ] {
        super::expand(attribute, item);
    }
}
