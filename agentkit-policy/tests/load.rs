//! What does not load, and what the findings say about it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use agentkit_policy::{
    Call, Facts, Finding, LoadError, Outcome, PolicyEngine, PolicySource, ToolDeclaration, User,
    Verdict,
};
use serde_json::json;

fn pay() -> ToolDeclaration {
    ToolDeclaration::new(
        "pay",
        json!({
            "type": "object",
            "properties": {
                "amount_cents": {"type": "integer"},
                "currency": {"enum": ["EUR", "USD"]}
            },
            "required": ["amount_cents", "currency"],
            "additionalProperties": false
        }),
    )
}

fn load(text: &str) -> Result<PolicyEngine, LoadError> {
    PolicyEngine::load(vec![pay()], &[PolicySource::new("pay.cedar", text)])
}

fn refused(text: &str) -> String {
    let error = load(text).expect_err("it must not load");
    println!("{error}\n");
    error.to_string()
}

#[test]
fn a_misspelt_field_in_a_forbid_does_not_load() {
    let text = refused(
        "@id(\"cap\")\nforbid (principal, action == Action::\"pay\", resource)\nwhen { context.input.amout_cents > 5 };",
    );
    assert!(text.starts_with("pay.cedar:3:"), "{text}");
    assert!(text.contains("policy `cap`"), "{text}");
    assert!(text.contains("amout_cents`"), "{text}");
    assert!(text.contains("did you mean `amount_cents`"), "{text}");
}

#[test]
fn a_typo_in_a_closed_list_does_not_load() {
    let ok = "@id(\"a\") forbid (principal, action, resource) when { context.input.currency == pay__currency::\"USD\" };";
    load(ok).unwrap();
    let text = refused(&ok.replace("USD", "USB"));
    assert!(text.contains("USB") && text.contains("\"USD\""), "{text}");
    assert_eq!(text.matches("policy `a`").count(), 1, "{text}");
    let text = refused(&ok.replace("pay__currency::", ""));
    assert!(text.contains("pay__currency"), "{text}");
}

#[test]
fn every_policy_has_an_id_of_its_own() {
    let text = refused("permit (principal, action == Action::\"pay\", resource);");
    assert!(text.contains("no id"), "{text}");
    let one = "@id(\"same\") permit (principal, action == Action::\"pay\", resource);\n";
    let text = refused(&format!("{one}{one}"));
    assert!(text.contains("pay.cedar:2:1"), "{text}");
    assert!(
        text.contains("taken by the policy at pay.cedar:1"),
        "{text}"
    );
}

#[test]
fn a_permit_answers_exactly_one_question() {
    for scope in [
        "action",
        "action in Action::\"pay\"",
        "action in Action::\"all tools\"",
        "action in [Action::\"all tools\"]",
        "action in [Action::\"pay\", Action::\"pay with approval\"]",
        "action in [Action::\"pay\", Action::\"approve pay\"]",
        "action == Action::\"all tools\"",
        "action in []",
    ] {
        let text = refused(&format!(
            "@id(\"x\") permit (principal, {scope}, resource);"
        ));
        assert!(text.contains("policy `x`"), "{scope}: {text}");
    }
    for scope in [
        "action == Action::\"pay\"",
        "action in [Action::\"pay\"]",
        "action == Action::\"pay with approval\"",
        "action in Action::\"pay with approval\"",
        "action in Action::\"approve all tools\"",
        "action in Action::\"read-only tools with approval\"",
        "action in Action::\"all tools unattended\"",
    ] {
        let text = format!("@id(\"x\") permit (principal, {scope}, resource);");
        load(&text).unwrap_or_else(|error| panic!("{scope}: {error}"));
    }
}

#[test]
fn a_forbid_may_name_a_group_or_everything() {
    for scope in [
        "action",
        "action in Action::\"pay\"",
        "action in Action::\"all tools\"",
        "action in [Action::\"destructive tools\", Action::\"approve pay\"]",
    ] {
        let text = format!("@id(\"x\") forbid (principal, {scope}, resource);");
        load(&text).unwrap_or_else(|error| panic!("{scope}: {error}"));
    }
}

#[test]
fn an_unknown_action_does_not_load_and_the_likely_one_is_named() {
    let text = refused("@id(\"x\") forbid (principal, action == Action::\"pai\", resource);");
    assert!(text.contains("did you mean `Action::\"pay\"`"), "{text}");
    let text = refused(
        "@id(\"x\") forbid (principal, action, resource) when { action == Action::\"paay\" };",
    );
    assert!(text.contains("did you mean `Action::\"pay\"`"), "{text}");
}

#[test]
fn several_findings_are_reported_at_once() {
    let error = load(
        "permit (principal, action == Action::\"pay\", resource);\n\
         @id(\"b\") permit (principal, action, resource);\n\
         @id(\"c\") forbid (principal, action, resource) when { context.input.nope };\n\
         @id(\"d\") forbid (principal, action, resource) when { 1 + };\n\
         @id(\"e\") @titel(\"t\") forbid (principal, action, resource);\n",
    )
    .expect_err("it must not load");
    let lines: Vec<Option<u32>> = error.findings().iter().map(Finding::line).collect();
    assert_eq!(
        lines,
        [Some(1), Some(2), Some(3), Some(4), Some(5)],
        "{error}"
    );
    assert!(
        error.to_string().contains("did you mean `@title`"),
        "{error}"
    );
}

#[test]
fn the_long_form_shows_the_line_and_marks_the_place() {
    let error = load(
        "@id(\"cap\")\nforbid (principal, action == Action::\"pay\", resource)\n\
         when { context.input.amout_cents > 5 };\n\n\
         @id(\"typo\") forbid (principal, action == Action::\"pai\", resource);\n\
         permit (principal, action == Action::\"pay\", resource);\n",
    )
    .expect_err("it must not load");
    let text = format!("{error:#}");
    println!("{text}");
    for part in [
        "\n --> pay.cedar:3:8\n  |\n3 | when { context.input.amout_cents > 5 };\n  |        ^^^^",
        "  = did you mean `amount_cents`",
        "policy `typo`: `Action::\"pai\"` names no declared tool\n --> pay.cedar:5:1",
        "the policy has no id\n --> pay.cedar:6:1",
    ] {
        assert!(text.contains(part), "{part}\n\n{text}");
    }
}

#[test]
fn a_policy_without_effect_is_a_warning() {
    let warnings = |text: &str| -> Vec<String> {
        let engine = load(text).unwrap_or_else(|error| panic!("{error}"));
        let set = engine.current();
        set.warnings().iter().map(ToString::to_string).collect()
    };
    let group = "@id(\"g\") forbid (principal, action in Action::\"destructive tools\", resource)
        when { context.input.nope };";
    assert!(warnings(group)[0].contains("applies to no declared tool"));
    let never = "@id(\"n\") forbid (principal, action == Action::\"pay\", resource)
        when { context.tool.destructive && context.approvals.count > 1 };";
    load(never).expect_err("there are no approvals in an unattended call");
    let never = "@id(\"n\") forbid (principal is Role, action == Action::\"pay\", resource);";
    assert!(
        warnings(never)[0].contains("can never match"),
        "{:?}",
        warnings(never)
    );
    let some = "@id(\"n\") forbid (principal, action in Action::\"pay\", resource)
        when { action == Action::\"pay\" };";
    assert_eq!(warnings(some), [""; 0]);
}

#[test]
fn a_template_does_not_load() {
    refused("@id(\"t\") permit (principal == ?principal, action == Action::\"pay\", resource);");
}

#[test]
fn a_tall_policy_does_not_load_and_a_huge_one_is_not_even_parsed() {
    let chain = |terms: usize| {
        let or = vec!["context.input.amount_cents == 1"; terms].join(" || ");
        format!(
            "@id(\"x\") forbid (principal, action == Action::\"pay\", resource) when {{ {or} }};"
        )
    };
    load(&chain(150)).unwrap();
    assert!(refused(&chain(300)).contains("nested"));
    assert!(refused(&chain(100_000)).contains("too large"));
    let deep = format!(
        "@id(\"x\") forbid (principal, action, resource) when {{ {}true{} }};",
        "(".repeat(200_000),
        ")".repeat(200_000)
    );
    assert!(refused(&deep).contains("too large"));
}

#[test]
fn a_failed_reload_keeps_the_old_set() {
    let engine =
        load("@id(\"x\") permit (principal, action == Action::\"pay\", resource);").unwrap();
    let before = engine.current().digest();
    engine
        .reload(&[PolicySource::new("broken.cedar", "permit (")])
        .expect_err("it must not load");
    let arguments = json!({"amount_cents": 1, "currency": "EUR"});
    let user = User::new("u");
    let call = Call {
        tool: "pay",
        arguments: &arguments,
        user: &user,
        agent: "a",
        run: "r",
        step: 0,
        now: 0,
        facts: Facts::default(),
    };
    assert_eq!(engine.current().digest(), before);
    assert_eq!(engine.current().decide(&call).outcome, Outcome::Allow);
    engine.reload(&[]).unwrap();
    assert_ne!(engine.current().digest(), before);
    assert_eq!(
        engine.current().decide(&call).outcome,
        Outcome::Deny,
        "default deny"
    );
}

#[test]
fn the_version_of_a_slice_changes_with_its_policies_and_with_nothing_else() {
    let other = || ToolDeclaration::new("look", json!({"type": "object"}));
    let load = |text: &str| {
        let sources = [PolicySource::new("p", text)];
        PolicyEngine::load(vec![pay(), other()], &sources)
            .unwrap_or_else(|error| panic!("{error}"))
            .current()
    };
    let on_pay = "@id(\"pay\") permit (principal, action == Action::\"pay\", resource);";
    let first = load(on_pay);
    let spaced = load(&format!("// a comment\n\n{}", on_pay.replace(' ', "  ")));
    assert_eq!(first.digest(), spaced.digest());
    let more = load(&format!(
        "{on_pay} @id(\"look\") permit (principal, action == Action::\"look\", resource);"
    ));
    assert_ne!(first.digest(), more.digest());
    assert_eq!(first.slice_digest("pay"), more.slice_digest("pay"));
    assert_ne!(first.slice_digest("look"), more.slice_digest("look"));
    let everywhere = load(&format!(
        "{on_pay} @id(\"stop\") forbid (principal, action, resource);"
    ));
    assert_ne!(first.slice_digest("pay"), everywhere.slice_digest("pay"));
    assert_eq!(first.slice_digest("nope"), None);
}

#[test]
fn a_tool_that_cannot_be_mapped_names_the_property_and_the_remedy() {
    let tool = |schema| ToolDeclaration::new("t", schema);
    let error = PolicyEngine::load(
        vec![tool(json!({
            "type": "object",
            "properties": {"a": {"type": "object", "properties": {"__entity": {"type": "string"}}}}
        }))],
        &[],
    )
    .expect_err("it must not load");
    assert_eq!(error.findings()[0].property(), Some("a.__entity"));
    assert!(error.findings()[0].suggestion().is_some());
    for (name, schema) in [
        ("", json!({"type": "object"})),
        ("two words", json!({"type": "object"})),
        ("list", json!({"type": "array"})),
    ] {
        PolicyEngine::load(vec![ToolDeclaration::new(name, schema)], &[])
            .expect_err("it must not load");
    }
    PolicyEngine::load(vec![pay(), pay()], &[]).expect_err("declared twice");
}

#[test]
fn without_policies_every_call_runs_and_anyone_may_approve() {
    let mut careful = pay();
    careful.name = "careful".to_owned();
    careful.require_approval = true;
    let engine = PolicyEngine::built_in(vec![pay(), careful]).unwrap();
    let set = engine.current();
    assert!(set.is_built_in());
    let arguments = json!({"anything": [1, 2, {"x": null}]});
    let user = User::new("u");
    let call = |tool| Call {
        tool,
        arguments: &arguments,
        user: &user,
        agent: "a",
        run: "r",
        step: 0,
        now: 0,
        facts: Facts::default(),
    };
    assert_eq!(set.decide(&call("pay")).outcome, Outcome::Allow);
    let careful = set.decide(&call("careful"));
    assert_eq!(careful.outcome, Outcome::RequireApproval { quorum: 1 });
    assert!(careful.demanded_by_declaration);
    assert_eq!(set.decide(&call("unknown")).outcome, Outcome::Deny);
    let nobody = User::default();
    let asked = agentkit_policy::Approvals::requested_at(0);
    assert!(set.may_approve(&call("careful"), &user, &asked).permitted);
    assert!(!set.may_approve(&call("careful"), &nobody, &asked).permitted);
    let release = |approvals| set.release(&call("careful"), &approvals).verdict;
    assert_eq!(release(asked.clone()), Verdict::Wait { quorum: 1 });
    assert_eq!(release(asked.approved_by(user.clone())), Verdict::Run);
}
