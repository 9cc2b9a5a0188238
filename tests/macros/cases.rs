//! Names, docs, forms of functions.

use agentkit::{
    tool,
    tool::{Tool, ToolSet, tools},
};
use serde_json::json;

use crate::{call, properties};

/// A raw name.
#[tool]
fn r#match(r#type: String) -> String {
    r#type
}

#[tokio::test]
async fn case_01_raw_names_lose_their_prefix() {
    assert_eq!(r#match::NAME, "match");
    assert_eq!(properties::<r#match>(), ["type"]);
    assert_eq!(call::<r#match>(r#"{"type":"x"}"#).await, json!("x"));
    assert_eq!(r#match("y".into()), "y");
}

/// Say "hi" \ {x}
///
///     let x = 1;
/** A block. */
#[doc = include_str!("text.md")]
#[tool]
fn documented() {}

#[test]
fn case_02_descriptions_are_exact() {
    assert_eq!(
        documented::spec().description,
        "Say \"hi\" \\ {x}\n\n    let x = 1;\nA block. \nFrom a file: {y} \"z\""
    );
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
enum Unit {
    Celsius,
}

/// Docs of arguments.
#[tool]
fn described(
    /** the city */
    city: String,
    #[doc = "unit"] u: Unit,
    /// Line one,
    /// line two.
    n: u8,
    bare: u8,
) -> String {
    let Unit::Celsius = u;
    format!("{city}{n}{bare}")
}

#[test]
fn case_03_arguments_have_descriptions() {
    let schema = described::spec().input_schema;
    let text = |name: &str| schema["properties"][name]["description"].clone();
    assert_eq!(text("city"), json!("the city"));
    assert_eq!(text("u"), json!("unit"));
    assert_eq!(text("n"), json!("Line one,\nline two."));
    assert_eq!(text("bare"), json!(null));
}

/// A where clause.
#[tool]
fn with_where(x: u8) -> u8
where
    u8: Copy,
{
    x
}

#[tokio::test]
async fn case_10_a_where_clause_stays_on_the_function() {
    assert_eq!(call::<with_where>(r#"{"x":3}"#).await, json!(3));
}

/// Conditional arguments.
#[tool]
fn conditional(
    a: u8,
    #[cfg(any())] b: NoSuchType,
    #[cfg(test)] c: u8,
    #[cfg_attr(all(), allow(unused_variables))] d: u8,
) -> u8 {
    a + c
}

#[tokio::test]
async fn case_11_conditions_reach_field_and_call() {
    assert_eq!(properties::<conditional>(), ["a", "c", "d"]);
    assert_eq!(
        call::<conditional>(r#"{"a":1,"c":2,"d":9}"#).await,
        json!(3)
    );
}

#[cfg(any())]
#[tool]
fn gone_above() {}

#[tool]
#[cfg(any())]
fn gone_below(x: NoSuchType) {}

#[test]
fn case_12_a_function_that_is_configured_away_is_gone() {
    let tools = tools![
        documented,
        #[cfg(any())]
        gone_above,
        #[cfg(any())]
        gone_below,
    ];
    assert_eq!(tools.len(), 1);
    // Nothing took the names.
    #[allow(non_camel_case_types)]
    struct gone_below;
    let _ = gone_below;
}

/// `mut` belongs to the body.
#[tool]
fn mutable(mut a: i64) -> i64 {
    a += 1;
    a
}

#[tokio::test]
async fn case_13_mut_stays_inside() {
    assert_eq!(properties::<mutable>(), ["a"]);
    assert_eq!(call::<mutable>(r#"{"a":1}"#).await, json!(2));
}

mod twin {
    /// Same name as another.
    #[agentkit::tool(name = "documented")]
    pub fn other() {}
}

#[test]
fn case_20_two_tools_of_one_name_are_an_error_that_names_both_places() {
    let mut tools = tools![documented];
    tools.extend(tools![twin::other]);
    let error = ToolSet::new(tools).unwrap_err();
    assert_eq!(error.name(), "documented");
    let text = error.to_string();
    assert_eq!(text.matches("cases.rs:").count(), 2, "{text}");
}

mod names {
    #![allow(dead_code, non_camel_case_types)]
    pub struct Search;
    pub const SEARCH: u8 = 1;
    pub static SEARCH_2: u8 = 2;
    pub struct f;

    /// Beside things of similar names.
    #[agentkit::tool]
    pub fn search() -> u8 {
        SEARCH
    }

    /// One letter.
    #[agentkit::tool]
    pub fn g(x: u8) -> u8 {
        x
    }

    pub mod taken {
        pub fn inner() {}
    }

    /// The type's name is taken by a module.
    #[agentkit::tool(type = TakenTool)]
    pub fn taken() -> u8 {
        taken::inner();
        4
    }
}

#[tokio::test]
async fn case_21_similar_names_do_not_clash() {
    assert_eq!(call::<names::search>("{}").await, json!(1));
    assert_eq!(call::<names::g>(r#"{"x":7}"#).await, json!(7));
    assert_eq!(call::<names::TakenTool>("").await, json!(4));
    assert_eq!(<names::TakenTool as Tool>::NAME, "taken");
}

/// Approval, four ways.
#[tool(require_approval)]
fn approve_1() {}
/// Not.
#[tool(require_approval = false)]
fn approve_2() {}
/// With a reason.
#[tool(require_approval = "money leaves")]
fn approve_3() {}
/// With details.
#[tool(require_approval(ttl = "24h", quorum = 2, why = "much money"))]
fn approve_4() {}

#[test]
fn case_26_approval_is_declared_in_four_ways() {
    let rules = [
        approve_1::spec().approval,
        approve_2::spec().approval,
        approve_3::spec().approval,
        approve_4::spec().approval,
    ];
    assert_eq!(
        rules.each_ref().map(|rule| rule.required),
        [true, false, true, true]
    );
    assert_eq!(rules[2].why.as_deref(), Some("money leaves"));
    assert_eq!(rules[3].quorum, 2);
    assert_eq!(rules[3].ttl.unwrap().as_secs(), 86_400);
}

/// Constant.
#[tool]
const fn constant(x: u8) -> u8 {
    x
}

#[tokio::test]
async fn case_27_const_functions_are_tools() {
    const _: u8 = constant(1);
    assert_eq!(call::<constant>(r#"{"x":1}"#).await, json!(1));
}

mod visible {
    pub(crate) mod a {
        /// Restricted.
        #[agentkit::tool]
        pub(in crate::cases) fn within() {}
        /// For the parent.
        #[agentkit::tool]
        pub(super) fn above() {}
        /// Private.
        #[agentkit::tool]
        fn private() {}

        pub(crate) fn names() -> [&'static str; 3] {
            use agentkit::tool::Tool;
            [within::NAME, above::NAME, private::NAME]
        }
    }

    pub(crate) fn above_name() -> &'static str {
        <a::above as agentkit::tool::Tool>::NAME
    }
}

#[test]
fn case_33_the_type_is_as_visible_as_the_function() {
    assert_eq!(visible::a::within::NAME, "within");
    assert_eq!(visible::above_name(), "above");
    assert_eq!(visible::a::names(), ["within", "above", "private"]);
}

macro_rules! make_tool {
    ($name:ident, $argument:ident : $ty:ty, $body:block) => {
        /// Made by a macro.
        #[tool]
        fn $name($argument: $ty) -> usize $body
    };
}
make_tool!(made, text: &str, { text.len() });

#[tokio::test]
async fn case_34_macros_can_make_tools() {
    assert_eq!(call::<made>(r#"{"text":"abc"}"#).await, json!(3));
}

mod facade {
    pub use ::agentkit as kit;
}

/// Through a re-export.
#[tool(crate = crate::cases::facade::kit)]
fn renamed(#[ctx] run: &agentkit::tool::RunContext, x: u8, #[arg(default)] y: u8) -> String {
    format!("{}{x}{y}", run.idempotency_key)
}

#[tokio::test]
async fn case_35_agentkit_can_be_somewhere_else() {
    assert_eq!(call::<renamed>(r#"{"x":1}"#).await, json!("key-110"));
}

/// Attributes around it.
#[must_use]
#[allow(clippy::needless_pass_by_value)]
#[tool]
#[doc(hidden)]
#[inline]
#[deprecated = "use another"]
pub fn decorated(x: String) -> usize {
    x.len()
}

#[tokio::test]
#[allow(deprecated)]
async fn case_36_other_attributes_stay() {
    assert_eq!(call::<decorated>(r#"{"x":"abc"}"#).await, json!(3));
}
