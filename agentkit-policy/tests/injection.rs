//! What a model may write in its arguments to choose what the policy sees: each row gets a
//! forbidden call through plain Cedar and is denied here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use agentkit_policy::{
    Call, Decision, Facts, Outcome, PolicyEngine, PolicySource, ToolDeclaration, User,
};
use cedar_policy::{
    Authorizer, Context, Decision as Plain, Entities, Entity, EntityUid, PolicySet, Request, Schema,
};
use serde_json::{Value, json};

struct Row {
    name: &'static str,
    /// What the model writes under `x`.
    injected: Value,
    /// The type that whoever uses plain Cedar declares for `x`, if they declare one.
    plain_type: Option<&'static str>,
    /// The property as the tool declares it.
    property: Value,
    /// When the call is forbidden, in plain Cedar and here.
    plain_forbid: &'static str,
    forbid: &'static str,
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "__entity where a text is expected: the value is there and equals nothing",
            injected: json!({"__entity": {"type": "User", "id": "evil"}}),
            plain_type: None,
            property: json!({"type": "string"}),
            plain_forbid: "context.input.x == \"evil\"",
            forbid: "context.input has x && context.input.x == \"evil\"",
        },
        Row {
            name: "__extn where a text is expected: the forbid errors and is skipped",
            injected: json!({"__extn": {"fn": "decimal", "arg": "1.0"}}),
            plain_type: None,
            property: json!({"type": "string"}),
            plain_forbid: "context.input.x like \"*1.0*\"",
            forbid: "context.input has x && context.input.x like \"*1.0*\"",
        },
        Row {
            name: "__extn where a number is expected: the comparison errors and is skipped",
            injected: json!({"__extn": {"fn": "ip", "arg": "10.0.0.1"}}),
            plain_type: None,
            property: json!({"type": "integer"}),
            plain_forbid: "context.input.x > 100",
            forbid: "context.input has x && context.input.x > 100",
        },
        Row {
            name: "{type, id} where the schema has an entity: the model chooses who it is",
            injected: json!({"type": "User", "id": "u"}),
            plain_type: Some("User"),
            property: json!({"type": "string"}),
            plain_forbid: "context.input.x != principal",
            forbid: "context.input has x && context.input.x != \"u\"",
        },
        Row {
            name: "{fn, arg} where the schema has an address: the model writes a whole range",
            injected: json!({"fn": "ip", "arg": "0.0.0.0/0"}),
            plain_type: Some("ipaddr"),
            property: json!({"type": "string", "format": "ip"}),
            plain_forbid: "context.input.x.isInRange(ip(\"10.0.0.0/8\"))",
            forbid: "context.input has x && context.input.x.isInRange(ip(\"10.0.0.0/8\"))",
        },
        Row {
            name: "a text where the schema has an address: it is a range too",
            injected: json!("0.0.0.0/0"),
            plain_type: Some("ipaddr"),
            property: json!({"type": "string", "format": "ip"}),
            plain_forbid: "context.input.x.isInRange(ip(\"10.0.0.0/8\"))",
            forbid: "context.input has x && context.input.x.isInRange(ip(\"10.0.0.0/8\"))",
        },
        Row {
            name: "__entity where any JSON is expected: its content is out of sight",
            injected: json!({"__entity": {"type": "User", "id": "drop table"}}),
            plain_type: None,
            property: json!(true),
            plain_forbid: "context.input has x.__entity",
            forbid: "context.input has x && context.input.x.present",
        },
    ]
}

const PERMIT: &str = "permit (principal, action == Action::\"t\", resource);";

fn on_plain_cedar(row: &Row) -> Plain {
    let uid = |text: &str| text.parse::<EntityUid>().unwrap();
    let action = uid("Action::\"t\"");
    let schema = row.plain_type.map(|kind| {
        let text = format!(
            "entity User; entity Agent; action \"t\" appliesTo {{ principal: [User], \
             resource: [Agent], context: {{ input: {{ x: {kind} }} }} }};"
        );
        Schema::from_cedarschema_str(&text).unwrap().0
    });
    let context = json!({"input": {"x": row.injected}});
    let typed = schema.as_ref().map(|schema| (schema, &action));
    let context = Context::from_json_value(context, typed)
        .unwrap_or_else(|error| panic!("{}: {error:?}", row.name));
    let request = Request::new(
        uid("User::\"u\""),
        action.clone(),
        uid("Agent::\"a\""),
        context,
        schema.as_ref(),
    )
    .unwrap();
    let entities = Entities::from_entities(
        ["User::\"u\"", "Agent::\"a\""].map(|e| Entity::with_uid(uid(e))),
        None,
    );
    let text = format!(
        "{PERMIT} forbid (principal, action == Action::\"t\", resource) when {{ {} }};",
        row.plain_forbid
    );
    let policies: PolicySet = text.parse().unwrap();
    Authorizer::new()
        .is_authorized(&request, &policies, &entities.unwrap())
        .decision()
}

fn here(row: &Row, value: &Value, property: &Value, forbid: &str) -> Decision {
    let schema = json!({"type": "object", "properties": {"x": property}});
    let text = format!(
        "@id(\"p\") {PERMIT} @id(\"f\") forbid (principal, action == Action::\"t\", resource) \
         when {{ {forbid} }};"
    );
    let engine = PolicyEngine::load(
        vec![ToolDeclaration::new("t", schema)],
        &[PolicySource::new("p.cedar", text)],
    )
    .unwrap_or_else(|error| panic!("{}: {error}", row.name));
    let arguments = json!({"x": value});
    engine.current().decide(&Call {
        tool: "t",
        arguments: &arguments,
        user: &User::new("u"),
        agent: "a",
        run: "r",
        step: 0,
        now: 0,
        facts: Facts::default(),
    })
}

#[test]
fn every_row_gets_through_plain_cedar_and_is_denied_here() {
    for row in rows() {
        assert_eq!(on_plain_cedar(&row), Plain::Allow, "{}", row.name);
        let decision = here(&row, &row.injected, &row.property, row.forbid);
        assert_eq!(decision.outcome, Outcome::Deny, "{}", row.name);
    }
}

#[test]
fn every_row_is_denied_at_every_depth() {
    for row in rows() {
        let (mut value, mut property) = (row.injected.clone(), json!({"type": "string"}));
        for depth in 0..4 {
            let decision = here(&row, &value, &property, "false");
            if row.injected.is_string() {
                assert_eq!(decision.outcome, Outcome::Allow, "a text is a text");
            } else {
                assert_eq!(decision.outcome, Outcome::Deny, "{} {depth}", row.name);
                assert!(
                    decision.errors[0].message.contains("argument `x"),
                    "{decision:?}"
                );
            }
            if depth % 2 == 0 {
                value = json!([value]);
                property = json!({"type": "array", "items": property});
            } else {
                value = json!({"k": value});
                property = json!({"type": "object", "additionalProperties": property});
            }
        }
    }
}

#[test]
fn unknown_cannot_be_written_at_all() {
    // With the feature `partial-eval` this would be a value of which nothing is known, and plain
    // Cedar would allow without a reason. `fail_open` notices the feature in the build.
    for injected in [
        json!({"__extn": {"fn": "unknown", "arg": "x"}}),
        json!({"__expr": "unknown(\"x\")"}),
        json!({"fn": "unknown", "args": ["x"]}),
    ] {
        let row = Row {
            name: "unknown",
            injected: injected.clone(),
            plain_type: None,
            property: json!({"type": "string"}),
            plain_forbid: "false",
            forbid: "context.input has x && context.input.x == \"evil\"",
        };
        let decision = here(&row, &injected, &row.property, row.forbid);
        assert_eq!(decision.outcome, Outcome::Deny, "{injected}");
    }
}
