//! Six ways in which plain Cedar lets a forbidden call through, each shown to do so before the
//! engine is shown not to.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use agentkit_policy::{
    AttributeType, Call, Decision, Facts, Outcome, PolicyEngine, PolicySource, Settings,
    ToolDeclaration, User,
};
use cedar_policy::{
    Authorizer, Context, Decision as Plain, Entities, EntityUid, PolicySet, Request, Response,
};
use serde_json::{Value, json};

/// What is asked of both.
struct Case {
    input: Value,
    forbid: String,
    user: User,
}

const PERMIT: &str =
    "@id(\"anything-goes\") permit (principal, action == Action::\"t\", resource);";

impl Case {
    fn new(input: Value, forbid: impl Into<String>) -> Self {
        Self {
            input,
            forbid: forbid.into(),
            user: User::new("u"),
        }
    }

    /// As applications do it that go by Cedar's tutorial: context from JSON, no schema, and the
    /// entities that somebody remembered to load.
    fn plain(&self, policies: &str) -> Response {
        let now = json!({"__extn": {"fn": "datetime", "arg": "2026-01-01T00:00:00Z"}});
        let context = json!({"input": self.input, "system": {"now": now}});
        let uid = |text: &str| text.parse::<EntityUid>().unwrap();
        let request = Request::new(
            uid("User::\"u\""),
            uid("Action::\"t\""),
            uid("Agent::\"a\""),
            Context::from_json_value(context, None).unwrap(),
            None,
        )
        .unwrap();
        let policies: PolicySet = policies.parse().unwrap();
        Authorizer::new().is_authorized(&request, &policies, &Entities::empty())
    }

    fn fails_open_on_plain_cedar(&self) -> usize {
        let response = self.plain(&format!("{PERMIT}{}", self.forbid));
        assert_eq!(
            response.decision(),
            Plain::Allow,
            "plain Cedar is safe here"
        );
        response.diagnostics().errors().count()
    }

    fn decide(&self, properties: &Value) -> Decision {
        let schema = json!({"type": "object", "properties": properties});
        let text = format!("{PERMIT}\n@id(\"never\") {}", self.forbid);
        let engine = PolicyEngine::load_with(
            vec![ToolDeclaration::new("t", schema)],
            &[PolicySource::new("p.cedar", text)],
            Settings::default().user_attribute("blocked", AttributeType::Bool),
        )
        .unwrap_or_else(|error| panic!("{error}"));
        engine.current().decide(&Call {
            tool: "t",
            arguments: &self.input,
            user: &self.user,
            agent: "a",
            run: "r",
            step: 0,
            now: 1_767_225_600_000_000,
            facts: Facts::default(),
        })
    }

    fn is_denied(&self, properties: &Value) -> Decision {
        let decision = self.decide(properties);
        assert_eq!(decision.outcome, Outcome::Deny, "{decision:?}");
        assert_eq!(decision.determining[0].id, "never");
        decision
    }
}

#[test]
fn one_integer_overflow_in_a_forbid() {
    let case = Case::new(
        json!({"a": i64::MAX}),
        "forbid (principal, action == Action::\"t\", resource) \
         when { context has input.a && context.input.a * 100 > 500000 };",
    );
    assert_eq!(case.fails_open_on_plain_cedar(), 1);
    let decision = case.is_denied(&json!({"a": {"type": "integer"}}));
    assert_eq!(decision.errors[0].policy.as_deref(), Some("never"));
    assert!(
        decision.errors[0].message.contains("overflow"),
        "{decision:?}"
    );
}

#[test]
fn two_datetime_overflow_in_a_forbid() {
    let forbid = "forbid (principal, action == Action::\"t\", resource) \
        when { context.system.now.durationSince(\
        datetime(\"1970-01-01\").offset(duration(\"-9223372036854775000ms\"))) > duration(\"1d\") };";
    let case = Case::new(json!({}), forbid);
    assert_eq!(case.fails_open_on_plain_cedar(), 1);
    let decision = case.is_denied(&json!({}));
    assert_eq!(decision.errors.len(), 1);
}

#[test]
fn three_recursion_limit_in_a_forbid() {
    let chain: Vec<String> = (0..180)
        .map(|n| format!("context.input.a == {n}"))
        .collect();
    let case = Case::new(
        json!({"a": 179}),
        format!(
            "forbid (principal, action == Action::\"t\", resource) when {{ context has input.a && ({}) }};",
            chain.join(" || ")
        ),
    );
    let text = format!("{PERMIT}{}", case.forbid);
    // Parsing needs a large stack and gets it; deciding is what is tested.
    let policies: PolicySet = stacker::grow(64 << 20, || text.parse().unwrap());
    let context = Context::from_json_value(json!({"input": case.input}), None).unwrap();
    let uid = |text: &str| text.parse::<EntityUid>().unwrap();
    let request = Request::new(
        uid("User::\"u\""),
        uid("Action::\"t\""),
        uid("Agent::\"a\""),
        context,
        None,
    )
    .unwrap();
    // Enough for the permit and not for the forbid, with and without optimisation.
    stacker::grow(512 * 1024, || {
        let response = Authorizer::new().is_authorized(&request, &policies, &Entities::empty());
        assert_eq!(
            response.decision(),
            Plain::Allow,
            "plain Cedar is safe here"
        );
        assert_eq!(response.diagnostics().errors().count(), 1);
    });
    stacker::grow(512 * 1024, || {
        let decision = case.is_denied(&json!({"a": {"type": "integer"}}));
        assert_eq!(decision.errors, [], "it had the stack that it needs");
    });
    stacker::grow(64 << 20, || drop(policies));
}

#[test]
fn four_attribute_of_a_missing_principal() {
    let mut case = Case::new(
        json!({}),
        "forbid (principal, action == Action::\"t\", resource) when { principal.blocked };",
    );
    assert_eq!(case.fails_open_on_plain_cedar(), 1);
    // Attributes of users are optional in the schema, so the policy has to ask first. Plain Cedar
    // then fails open without even an error.
    case.forbid = case.forbid.replace(
        "principal.blocked",
        "principal has blocked && principal.blocked",
    );
    assert_eq!(case.fails_open_on_plain_cedar(), 0);
    case.user = User::new("u").attribute("blocked", true);
    case.is_denied(&json!({}));
    case.user = User::new("u").attribute("blocked", false);
    assert_eq!(case.decide(&json!({})).outcome, Outcome::Allow);
    case.user = User::new("u").attribute("blocked", "yes");
    let decision = case.decide(&json!({}));
    assert_eq!(decision.outcome, Outcome::Deny, "not of its declared type");
}

#[test]
fn five_hierarchy_of_a_missing_principal() {
    let mut case = Case::new(
        json!({}),
        "forbid (principal in Role::\"blocked\", action == Action::\"t\", resource);",
    );
    assert_eq!(case.fails_open_on_plain_cedar(), 0, "not even an error");
    case.user = User::new("u").role("blocked");
    case.is_denied(&json!({}));
    case.user = User::new("u").role("other");
    assert_eq!(case.decide(&json!({})).outcome, Outcome::Allow);
}

#[test]
fn six_values_that_choose_what_the_policy_sees() {
    // What a model may write where a text is expected.
    let injections = [
        json!({"__entity": {"type": "User", "id": "x"}}),
        json!({"__extn": {"fn": "ip", "arg": "10.0.0.1"}}),
        json!({"__extn": {"fn": "unknown", "arg": "x"}}),
        json!({"fn": "unknown", "args": ["x"]}),
        json!({"type": "User", "id": "x"}),
        json!({"__expr": "User::\"x\""}),
    ];
    let forbid = "forbid (principal, action == Action::\"t\", resource) \
                  when { context.input has to && context.input.to == \"evil\" };";
    let text = json!({"type": "string"});
    for injection in &injections {
        let mut nested = injection.clone();
        for depth in 0..4 {
            let case = Case::new(json!({"to": nested}), forbid);
            let decision = case.decide(&json!({"to": text}));
            assert_eq!(decision.outcome, Outcome::Deny, "{depth}: {nested}");
            assert!(
                decision.errors[0].message.contains("argument `to`"),
                "{decision:?}"
            );
            nested = if depth % 2 == 0 {
                json!([nested])
            } else {
                json!({"deeper": nested})
            };
        }
    }

    // Plain Cedar takes the first one for an entity: the value is in the arguments and the policy
    // does not see it.
    let entity = json!({"to": {"__entity": {"type": "String", "id": "evil"}}});
    let case = Case::new(entity, forbid);
    assert_eq!(case.fails_open_on_plain_cedar(), 0);
    let case = Case::new(
        json!({"to": {"__extn": {"fn": "decimal", "arg": "1.0"}}}),
        "forbid (principal, action == Action::\"t\", resource) \
         when { context.input.to like \"*1.0*\" };",
    );
    assert_eq!(case.fails_open_on_plain_cedar(), 1);
    // Where any JSON is allowed, it stays data at every depth.
    for injection in &injections {
        for value in [injection.clone(), json!([{"x": [injection]}])] {
            let case = Case::new(
                json!({"to": value}),
                "forbid (principal, action == Action::\"t\", resource) \
                 when { context.input has to && context.input.to.present };",
            );
            case.is_denied(&json!({"to": true}));
        }
        let case = Case::new(
            json!({"to": injection}),
            "forbid (principal, action == Action::\"t\", resource) \
             when { context.input has to && !context.input.to.keys.isEmpty() };",
        );
        case.is_denied(&json!({"to": {"type": "object", "additionalProperties": true}}));
    }
}

#[test]
fn partial_evaluation_is_in_no_crate_of_the_build() {
    // With Cedar's feature `partial-eval`, which any crate of a build can switch on for all, the
    // function `unknown` exists and decisions can lack reasons.
    let parsed =
        "permit (principal, action, resource) when { unknown(\"x\") };".parse::<PolicySet>();
    let injected = Context::from_json_value(
        json!({"x": {"__extn": {"fn": "unknown", "arg": "x"}}}),
        None,
    );
    assert!(
        parsed.is_err() && injected.is_err(),
        "some crate enables the feature `partial-eval` of cedar-policy; find it with \
         `cargo tree -e features -i cedar-policy`"
    );
}
