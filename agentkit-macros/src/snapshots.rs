//! What the macros expand to, as people would write it. `INSTA_UPDATE=always` records anew.
#![allow(clippy::unwrap_used, reason = "tests may")]

use proc_macro2::TokenStream;
use quote::quote;

fn pretty(expansion: TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(expansion).unwrap())
}

fn tool(options: TokenStream, item: TokenStream) -> String {
    pretty(crate::tool::expand(options, item))
}

macro_rules! snapshot {
    ($name:ident, $expansion:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), $expansion);
        }
    };
}

snapshot!(
    plain,
    tool(
        quote!(),
        quote! {
            /// Adds.
            pub fn add(a: i64, b: i64) -> i64 { a + b }
        }
    )
);

snapshot!(
    no_arguments,
    tool(
        quote!(),
        quote!(
            fn ping() {}
        )
    )
);

snapshot!(
    borrowed_and_contexts,
    tool(
        quote!(),
        quote! {
            /// Finds.
            async fn find<'a>(name: &'a str, ids: &[u64], #[ctx] pool: &Pool, #[ctx] run: Arc<RunContext>) -> Result<usize, Error> {}
        }
    )
);

snapshot!(
    attributes_of_arguments,
    tool(
        quote!(name = "order", crate = ::facade::kit),
        quote! {
            fn f(
                /// How many.
                #[arg(default = 3)] #[schemars(range(min = 1))] n: u8,
                #[arg(rename = "type")] kind: Kind,
                #[cfg(feature = "x")] #[arg(default)] x: u8,
                #[serde(flatten)] more: More,
            ) {}
        }
    )
);

snapshot!(
    suspension,
    tool(
        quote!(suspend = Ask, resume = City),
        quote!(
            fn weather(city: Option<String>, #[resume] answer: Option<City>) -> Flow<Weather, Ask> {
            }
        )
    )
);

snapshot!(
    declarations,
    tool(
        quote!(
            require_approval(
                when = |args| args.cents > 100,
                why = "money",
                ttl = "24h",
                quorum = 2
            ),
            destructive,
            idempotent,
            timeout = "30s",
            labels = ["money"],
            facts(whole = |args| args.cents / 100),
        ),
        quote! {
            #[deprecated]
            fn pay(cents: u64) -> impl Serialize {}
        }
    )
);

snapshot!(
    mistakes_keep_function_and_type,
    tool(
        quote!(nam = "x"),
        quote!(
            pub fn f((a, b): (u8, u8)) -> u8 {
                a + b
            }
        )
    )
);

snapshot!(
    methods,
    pretty(crate::tool::expand_methods(
        quote!(),
        &quote! {
            #[cfg(unix)]
            impl Shop {
                /// Counts.
                #[tool(read_only)]
                pub fn count(&self, of: Self::Id) -> usize { self.0 }
                fn other(&self) {}
            }
        }
    ))
);

snapshot!(
    agent,
    pretty(crate::agent::expand(
        quote!(
            name = "desk",
            model = "openai/gpt-5-mini",
            instructions = include_str!("desk.md"),
            tools = [
                find,
                money::refund as Refund,
                #[cfg(unix)]
                count
            ],
            policy = "desk.cedar",
        ),
        quote!(
            pub struct Desk;
        )
    ))
);

snapshot!(
    generic_agent_without_tools,
    pretty(crate::agent::expand(
        quote!(name = "empty", model = "a/b", instructions = ""),
        quote!(
            struct Empty<T: Clone>(T)
            where
                T: Copy;
        )
    ))
);

snapshot!(
    list,
    pretty({
        let list = crate::list::expand(quote!(
            a,
            #[cfg(unix)]
            b::c
        ));
        quote!(fn list() { #list })
    })
);
