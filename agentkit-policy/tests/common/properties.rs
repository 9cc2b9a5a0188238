//! What must hold of hostile input whatever it is; fuzz targets and property tests share it.

#![allow(dead_code, reason = "each fuzz target uses one property")]

use agentkit_policy::{
    Approvals, Call, Decision, Facts, Outcome, PolicyEngine, PolicySource, ToolDeclaration, User,
};
use serde_json::{Value, json};

const PERMIT: &str =
    "@id(\"all\") permit (principal, action in Action::\"all tools unattended\", resource);";

fn call<'a>(tool: &'a str, arguments: &'a Value, user: &'a User) -> Call<'a> {
    Call {
        tool,
        arguments,
        user,
        agent: "agent",
        run: "run",
        step: 1,
        now: 1_770_000_000_000_000,
        facts: Facts::default(),
    }
}

fn tools() -> Vec<ToolDeclaration> {
    let pay = json!({
        "type": "object",
        "properties": {"cents": {"type": "integer"}, "to": {"type": "string"}, "mode": {"enum": ["r", "w"]}},
        "required": ["cents"]
    });
    let mut look = ToolDeclaration::new("look", json!({"type": "object"}));
    look.read_only = true;
    vec![ToolDeclaration::new("pay", pay), look]
}

/// A text of policies loads, or the findings say where it does not. What loads, loads alike again,
/// and can never permit what another policy forbids.
pub(crate) fn policy_text(text: &str) {
    let source = PolicySource::new("p.cedar", text);
    let engine = match PolicyEngine::load(tools(), std::slice::from_ref(&source)) {
        Ok(engine) => engine,
        Err(error) => {
            assert!(!error.findings().is_empty());
            let lines = u32::try_from(text.split('\n').count()).unwrap();
            for finding in error.findings() {
                assert!(
                    finding
                        .line()
                        .is_none_or(|line| (1..=lines).contains(&line))
                );
                assert!(!finding.message().is_empty());
            }
            assert!(!format!("{error}\n{error:#}").is_empty());
            return;
        }
    };
    let again = PolicyEngine::load(tools(), std::slice::from_ref(&source)).unwrap();
    assert_eq!(engine.current().digest(), again.current().digest());

    let stop = "@id(\"\u{1f6d1}\") forbid (principal, action, resource);";
    let stopped = PolicyEngine::load(tools(), &[source, PolicySource::new("stop.cedar", stop)]);
    let (user, approver) = (User::new("u").role("a"), User::new("v").role("a"));
    for (tool, arguments) in [
        ("pay", json!({"cents": i64::MAX, "to": "x", "mode": "w"})),
        ("pay", json!({"cents": 0})),
        ("look", json!({})),
    ] {
        let call = call(tool, &arguments, &user);
        let set = engine.current();
        let decision = set.decide(&call);
        consistent(&decision);
        assert_eq!(set.explain(&call).decision, decision);
        assert_eq!(again.current().decide(&call), decision);
        if let Ok(stopped) = &stopped {
            let set = stopped.current();
            assert_eq!(set.decide(&call).outcome, Outcome::Deny);
            let asked = Approvals::requested_at(call.now);
            assert!(!set.may_approve(&call, &approver, &asked).permitted);
        }
    }
}

/// What runs alone or with approvals does so by some policy.
fn consistent(decision: &Decision) {
    if decision.outcome != Outcome::Deny {
        assert!(!decision.determining.is_empty(), "{decision:?}");
    }
}

/// A schema loads with every plain argument visible to policies, always under the same Cedar
/// schema, or is refused with a remedy.
pub(crate) fn tool_schema(text: &str) {
    let Ok(schema) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let load = |policies: String| {
        let tool = ToolDeclaration::new("tool", schema.clone());
        PolicyEngine::load(vec![tool], &[PolicySource::new("p.cedar", policies)])
    };
    let engine = match load(PERMIT.to_owned()) {
        Ok(engine) => engine,
        Err(error) => {
            let finding = &error.findings()[0];
            assert!(finding.suggestion().is_some(), "{error}");
            return;
        }
    };
    let again = load(PERMIT.to_owned()).unwrap();
    assert_eq!(
        engine.current().schema_text(),
        again.current().schema_text()
    );
    visible(&schema, load);
    let user = User::new("u");
    for arguments in [
        json!({}),
        json!(null),
        json!({"a": 1, "": [null]}),
        schema.clone(),
    ] {
        mapped_or_denied(&engine.current().decide(&call("tool", &arguments, &user)));
    }
}

/// A policy that asks about a property loads only if it is there.
fn visible<E: std::fmt::Display>(schema: &Value, load: impl Fn(String) -> Result<PolicyEngine, E>) {
    let Some(object) = schema.as_object() else {
        return;
    };
    let plain = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "description",
        "title",
    ];
    let properties = object.get("properties").and_then(Value::as_object);
    let is_object = object.get("type").is_none_or(|kind| kind == "object");
    if !is_object || !object.keys().all(|key| plain.contains(&key.as_str())) {
        return;
    }
    for key in properties
        .into_iter()
        .flat_map(|properties| properties.keys())
        .take(4)
    {
        let literal: String = key.chars().fold(String::new(), |literal, c| match c {
            '"' | '\\' => literal + "\\" + &c.to_string(),
            c if c.is_control() => literal + &format!("\\u{{{:x}}}", u32::from(c)),
            c => literal + &c.to_string(),
        });
        let policy = format!(
            "{PERMIT}\n@id(\"f\") forbid (principal, action == Action::\"tool\", resource) \
             when {{ context.input has \"{literal}\" && \
             context.input[\"{literal}\"] == context.input[\"{literal}\"] }};"
        );
        if let Err(error) = load(policy) {
            panic!("the argument {key:?} cannot be seen: {error}");
        }
    }
}

fn mapped_or_denied(decision: &Decision) {
    if decision.outcome == Outcome::Allow {
        assert_eq!(decision.errors, []);
    } else {
        let error = &decision.errors[0];
        assert!(error.message.starts_with("argument"), "{error}");
        assert_eq!(
            error.question, None,
            "the mapper let through what Cedar refuses: {error}"
        );
    }
}

/// Arguments are seen as they are, or refused with their path.
pub(crate) fn tool_arguments(text: &str) {
    let Ok(arguments) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let user = User::new("u");
    thread_local! {
        static ENGINES: [PolicyEngine; 2] = {
            let load = |policies: String| {
                let tool = ToolDeclaration::new("tool", rich_schema());
                PolicyEngine::load(vec![tool], &[PolicySource::new("p.cedar", policies)]).unwrap()
            };
            let watch = "@id(\"f\") forbid (principal, action == Action::\"tool\", resource) \
                 when { context.input has note && context.input.note == \"evil\" };";
            [load(PERMIT.to_owned()), load(format!("{PERMIT}{watch}"))]
        };
    }
    ENGINES.with(|[engine, watched]| {
        let call = call("tool", &arguments, &user);
        let decision = engine.current().decide(&call);
        mapped_or_denied(&decision);
        let seen = watched.current().decide(&call);
        let evil = arguments.get("note").is_some_and(|note| note == "evil");
        if decision.outcome == Outcome::Allow {
            assert_eq!(seen.outcome == Outcome::Deny, evil, "{arguments}");
        } else {
            assert_eq!(seen.outcome, Outcome::Deny);
        }
        assert_eq!(
            engine.current().explain(&call).arguments_sha256,
            watched.current().explain(&call).arguments_sha256
        );
    });
}

/// One property of every kind.
fn rich_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "n": {"type": "number"}, "i": {"type": "integer"}, "b": {"type": "boolean"},
            "at": {"type": "string", "format": "date-time"},
            "price": {"type": "string", "format": "decimal"},
            "host": {"type": "string", "format": "ip"},
            "mode": {"enum": ["r", "rw"]},
            "note": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
            "target": {"oneOf": [
                {"type": "object", "properties": {"type": {"const": "person"}, "name": {"type": "string"}}, "required": ["type", "name"]},
                {"type": "object", "properties": {"type": {"const": "nobody"}}, "required": ["type"]}
            ]},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "tree": {"$ref": "#/$defs/Tree"},
            "blob": true
        },
        "$defs": {"Tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}}
    })
}
