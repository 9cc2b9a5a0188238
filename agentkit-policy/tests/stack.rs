//! A policy of the greatest allowed height evaluates without running out of stack.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use agentkit_policy::{Call, Facts, Outcome, PolicyEngine, PolicySource, ToolDeclaration, User};
use serde_json::json;

const HEIGHT: usize = 200;

/// One expression of each kind that nests, as tall as it still loads.
fn tallest(grow: impl Fn(&str) -> String, seed: &str, shape: &str) -> PolicyEngine {
    let engine = |steps: usize| {
        let body = (0..steps).fold(seed.to_owned(), |body, _| grow(&body));
        let text = format!(
            "@id(\"p\") permit (principal, action == Action::\"t\", resource);
             @id(\"f\") forbid (principal, action == Action::\"t\", resource)
             when {{ {} }};",
            shape.replace("BODY", &body)
        );
        let schema = json!({
            "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]
        });
        PolicyEngine::load(
            vec![ToolDeclaration::new("t", schema)],
            &[PolicySource::new("p", text)],
        )
    };
    // A step is one level or two, and the test around it a few more.
    (HEIGHT - 8..=HEIGHT)
        .chain(HEIGHT / 2 - 8..=HEIGHT / 2)
        .rev()
        .find_map(|steps| engine(steps).ok())
        .expect("some height loads")
}

#[test]
fn the_tallest_policy_has_the_stack_it_needs() {
    let tall = [
        tallest(
            |body| format!("({body} || context.input.a == 1)"),
            "context.input.a == 5",
            "BODY",
        ),
        tallest(
            |body| format!("(if context.input.a == 5 then {body} else false)"),
            "context.input.a == 5",
            "BODY",
        ),
        tallest(
            |body| format!("({body} + 1)"),
            "context.input.a",
            "BODY > 0",
        ),
        tallest(
            |body| format!("{{\"x\": {body}}}.x"),
            "context.input.a",
            "BODY == 5",
        ),
        tallest(
            |body| format!("!({body})"),
            "context.input.a == 5",
            "[true, false].contains(BODY)",
        ),
    ];
    for engine in tall {
        for stack in [256, 1024, 4096] {
            stacker::grow(stack * 1024, || {
                let arguments = json!({"a": 5});
                let user = User::new("u");
                let decision = engine.current().decide(&Call {
                    tool: "t",
                    arguments: &arguments,
                    user: &user,
                    agent: "a",
                    run: "r",
                    step: 0,
                    now: 0,
                    facts: Facts::default(),
                });
                assert_eq!(decision.errors, []);
                assert_eq!(decision.outcome, Outcome::Deny);
                assert_eq!(decision.determining[0].id, "f");
            });
        }
    }
}
