//! Names that would break an expansion that trusted the scope it lands in.

/// Case 22: arguments named like what an expansion might use.
mod arguments {
    /// Every name that a macro might have used.
    #[agentkit::tool]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn hostile_arguments(
        args: u8,
        ctx: u8,
        cx: u8,
        self_: u8,
        __agentkit_args: u8,
        input: u8,
        schema: u8,
        call: u8,
        r#async: u8,
        self_type: u8,
        output: u8,
        spec: u8,
        shape: u8,
        failure: u8,
        value: u8,
        argument_0: u8,
        #[ctx] context_0: &u64,
    ) -> u64 {
        let sum = args
            + ctx
            + cx
            + self_
            + __agentkit_args
            + input
            + schema
            + call
            + r#async
            + self_type
            + output
            + spec
            + shape
            + failure
            + value
            + argument_0;
        u64::from(sum) + context_0
    }
}

/// Case 23: items that are named like those of the standard library and of the macro.
mod items {
    #![allow(dead_code, unused_macros, non_camel_case_types, non_snake_case)]

    pub(super) struct Result;
    pub(super) struct Option;
    pub(super) struct String;
    pub(super) struct Vec;
    pub(super) struct Box;
    pub(super) struct Default;
    pub(super) struct Send;
    pub(super) struct Tool;
    pub(super) struct ToolContext;
    pub(super) struct Args;
    pub(super) struct ValueProbe;
    pub(super) trait Into {}
    pub(super) trait From {}
    pub(super) trait Clone {}
    pub(super) trait Serialize {}
    pub(super) fn Ok() {}
    pub(super) fn Err() {}
    // Not `Some`: the derive of schemars trusts that one where an argument has a default.
    pub(super) fn None() {}
    pub(super) fn run() {}
    pub(super) fn drop() {}
    pub(super) mod std {}
    pub(super) mod core {}
    pub(super) mod alloc {}
    pub(super) mod serde {}
    pub(super) mod serde_json {}
    pub(super) mod schemars {}
    pub(super) mod agentkit {}
    macro_rules! vec {
        () => {
            compile_error!("not this one")
        };
    }
    macro_rules! file {
        () => {
            compile_error!("not this one")
        };
    }
    macro_rules! format {
        () => {
            compile_error!("not this one")
        };
    }
    macro_rules! concat {
        () => {
            compile_error!("not this one")
        };
    }
    macro_rules! stringify {
        () => {
            compile_error!("not this one")
        };
    }
    macro_rules! line {
        () => {
            compile_error!("not this one")
        };
    }

    /// In a hostile module.
    #[::agentkit::tool(require_approval = "why", suspend = ::std::string::String, resume = ::core::primitive::u8)]
    pub(super) fn hostile_items(
        a: ::std::string::String,
        #[arg(default = ::core::option::Option::None)] b: ::core::option::Option<
            ::core::primitive::u8,
        >,
        c: &::core::primitive::str,
        #[ctx] d: &::core::primitive::u64,
        #[resume] e: ::core::option::Option<::core::primitive::u8>,
    ) -> ::core::result::Result<
        ::agentkit::tool::Flow<usize, ::std::string::String>,
        ::std::string::String,
    > {
        let _ = (b, d, e);
        ::core::result::Result::Ok(::agentkit::tool::Flow::Done(a.len() + c.len()))
    }

    /// An agent in a hostile module.
    #[::agentkit::agent(name = "hostile", model = "a/b", instructions = "", tools = [hostile_items])]
    pub(super) struct Hostile;
}

use agentkit::{
    agent::Agent,
    tool::{Contexts, Flow},
};
use serde_json::json;

use crate::{call_with, context, properties};

fn contexts() -> Contexts {
    let mut contexts = Contexts::new();
    contexts.insert(100_u64);
    contexts
}

#[tokio::test]
async fn case_22_arguments_shadow_nothing() {
    let names = properties::<arguments::hostile_arguments>();
    assert!(names.contains(&"async".to_owned()));
    let raw: serde_json::Map<_, _> = names.into_iter().map(|name| (name, json!(1))).collect();
    let raw = serde_json::Value::Object(raw).to_string();
    let done = call_with::<arguments::hostile_arguments>(&raw, context(contexts(), None)).await;
    assert_eq!(done.unwrap(), Flow::Done(json!(116)));
}

#[tokio::test]
async fn case_23_local_items_do_not_reach_the_expansion() {
    let raw = r#"{"a":"ab","c":"c"}"#;
    let done = call_with::<items::hostile_items>(raw, context(contexts(), None)).await;
    assert_eq!(done.unwrap(), Flow::Done(json!(3)));
    assert_eq!(items::Hostile::definition().tools.len(), 1);
}
