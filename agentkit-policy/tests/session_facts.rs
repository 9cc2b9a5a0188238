//! The fourteen rules about the past load against their declarations and decide by given facts;
//! a fact that is missing denies.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use std::collections::BTreeSet;

use agentkit_policy::testing::PolicyTest;
use agentkit_policy::{
    AttributeType, AttributeValue, Call, Distinct, FactDeclaration, FactKind, FactScope,
    FactWindow, Facts, HostFacts, LoadError, Outcome, PolicyEngine, PolicySource, Question,
    SessionFacts, Settings, ToolDeclaration, User, ValuePath,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: i64 = 1_770_000_000_000_000;
const MINUTE: i64 = 60_000_000;

fn tool(name: &str, properties: &Value) -> ToolDeclaration {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    ToolDeclaration::new(
        name,
        json!({"type": "object", "properties": properties, "required": required}),
    )
}

fn tools() -> Vec<ToolDeclaration> {
    let order = json!({"order": {"type": "string"}});
    let money = json!({"to": {"type": "string"}, "cents": {"type": "integer"}});
    vec![
        tool("pay", &money),
        tool("approve", &money),
        tool("read", &json!({"id": {"type": "string"}})),
        tool("delete", &json!({"id": {"type": "string"}})),
        tool("mail", &json!({"to": {"type": "string"}})),
        tool("charge", &order),
        tool("refund", &order),
        tool("lookup", &json!({})),
        tool("run_tests", &json!({"sha": {"type": "string"}})),
        tool("edit", &json!({"file": {"type": "string"}})),
        tool("deploy", &json!({"sha": {"type": "string"}})),
    ]
}

fn input(path: &str) -> ValuePath {
    ValuePath::Input(path.to_owned())
}

fn declarations() -> Vec<FactDeclaration> {
    use FactKind as Kind;
    let fact = |name: &str, kind, tool: &str, window| {
        FactDeclaration::new(name, kind, tool, window, FactScope::Principal)
    };
    let hour = FactWindow::hours(1);
    vec![
        fact("pay_admitted_1h", Kind::CountAdmitted, "pay", hour),
        fact(
            "pay_cents_admitted_1h",
            Kind::SumAdmitted {
                path: input("cents"),
            },
            "pay",
            hour,
        ),
        fact("approve_ok_same_1h", Kind::ExistsOk, "approve", hour).same(["to", "cents"]),
        fact(
            "approvals_unspent_same_1h",
            Kind::Unspent {
                uses: BTreeSet::from(["pay".to_owned()]),
            },
            "approve",
            hour,
        )
        .same(["to", "cents"]),
        fact(
            "read_ok_same_id_10m",
            Kind::ExistsOk,
            "read",
            FactWindow::minutes(10),
        )
        .same(["id"]),
        fact(
            "charge_failed_at",
            Kind::LastFailedAt,
            "charge",
            FactWindow::minutes(5),
        )
        .same(["order"]),
        fact(
            "approvers_distinct_same_1h",
            Kind::DistinctOk {
                of: Distinct::Approvers {
                    excluding_requester: true,
                },
            },
            "approve",
            hour,
        )
        .same(["to", "cents"]),
        fact(
            "lookup_accounts_ok_1h",
            Kind::ValuesOk {
                path: ValuePath::Output("account".to_owned()),
                of: AttributeType::String,
            },
            "lookup",
            hour,
        ),
        fact(
            "tests_ok_at",
            Kind::LastOkAt,
            "run_tests",
            FactWindow::hours(2),
        )
        .same(["sha"]),
        fact(
            "edit_admitted_at",
            Kind::LastAdmittedAt,
            "edit",
            FactWindow::hours(2),
        ),
        fact(
            "charge_admitted_at",
            Kind::LastAdmittedAt,
            "charge",
            FactWindow::minutes(2),
        )
        .same(["order"]),
        fact(
            "refund_admitted_at",
            Kind::LastAdmittedAt,
            "refund",
            FactWindow::minutes(2),
        )
        .same(["order"]),
        fact(
            "lookup_failed_10m",
            Kind::CountFailedOrDenied,
            "lookup",
            FactWindow::minutes(10),
        ),
        fact(
            "pay_in_flight",
            Kind::InFlight,
            "pay",
            FactWindow::hours(24),
        ),
        fact("same_args_admitted", Kind::CountAdmitted, "mail", hour).same_arguments(),
    ]
}

fn settings() -> Settings {
    declarations()
        .into_iter()
        .fold(Settings::default(), Settings::fact)
}

fn load_with(settings: Settings, text: &str) -> Result<PolicyEngine, LoadError> {
    PolicyEngine::load_with(tools(), &[PolicySource::new("rules.cedar", text)], settings)
}

/// The rule for a call of `tool`; `permit` where the rule itself permits.
fn rule(effect: &str, tool: &str, when: &str) -> PolicyEngine {
    let mut text = format!(" {when}");
    for (short, long) in [
        ("s.", "context.session."),
        ("s has ", "context.session has "),
        ("i.", "context.input."),
        ("now.", "context.system.now."),
    ] {
        for before in [" ", "("] {
            text = text.replace(&format!("{before}{short}"), &format!("{before}{long}"));
        }
    }
    let when = text;
    let others = match effect {
        "permit" => String::new(),
        _ => format!("@id(\"all\") permit (principal, action == Action::\"{tool}\", resource);\n"),
    };
    let text = format!(
        "{others}@id(\"rule\") {effect} (principal, action == Action::\"{tool}\", resource)\n\
         when {{ {when} }};"
    );
    load_with(settings(), &text).unwrap_or_else(|error| panic!("{error}"))
}

/// Under these facts the rule lets the call run, or not.
fn check(engine: &PolicyEngine, tool: &str, arguments: &Value, cases: &[(SessionFacts, bool)]) {
    for (facts, runs) in cases {
        let test = PolicyTest::new(engine).at(NOW).session(facts.clone());
        let user = User::new("u");
        let decision = test.call(tool, arguments, &user).explanation().decision;
        assert_eq!(decision.errors, [], "{facts:?}");
        let expected = if *runs { Outcome::Allow } else { Outcome::Deny };
        assert_eq!(decision.outcome, expected, "{facts:?}");
    }
}

fn known(name: &str, value: impl Into<AttributeValue>) -> SessionFacts {
    SessionFacts::new().set(name, value)
}

fn ago(name: &str, minutes: i64) -> SessionFacts {
    SessionFacts::new().set_time(name, NOW - minutes * MINUTE)
}

fn texts(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

fn pay() -> Value {
    json!({"to": "acc-1", "cents": 1000})
}

#[test]
fn rule_01_at_most_3_pays_an_hour() {
    let engine = rule("forbid", "pay", "s.pay_admitted_1h >= 3");
    let of = |count: i64| known("pay_admitted_1h", count);
    check(
        &engine,
        "pay",
        &pay(),
        &[(of(0), true), (of(2), true), (of(3), false)],
    );
}

#[test]
fn rule_02_at_most_50_an_hour() {
    let engine = rule("forbid", "pay", "s.pay_cents_admitted_1h + i.cents > 5000");
    let of = |cents: i64| known("pay_cents_admitted_1h", cents);
    check(
        &engine,
        "pay",
        &pay(),
        &[(of(4000), true), (of(4001), false)],
    );
    // A sum that overflows is a forbid that cannot be evaluated, and that denies.
    let user = User::new("u");
    let test = PolicyTest::new(&engine).session(of(i64::MAX));
    let decision = test.call("pay", &pay(), &user).explanation().decision;
    assert_eq!(decision.outcome, Outcome::Deny);
    assert_eq!(decision.errors.len(), 1);
}

#[test]
fn rule_03_approval_for_the_same_arguments() {
    let engine = rule("permit", "pay", "s.approve_ok_same_1h");
    let of = |ok: bool| known("approve_ok_same_1h", ok);
    check(
        &engine,
        "pay",
        &pay(),
        &[(of(true), true), (of(false), false)],
    );
}

#[test]
fn rule_04_one_use_for_each_approval() {
    let engine = rule("permit", "pay", "s.approvals_unspent_same_1h >= 1");
    let of = |left: i64| known("approvals_unspent_same_1h", left);
    check(
        &engine,
        "pay",
        &pay(),
        &[(of(1), true), (of(0), false), (of(-1), false)],
    );
}

#[test]
fn rule_05_read_before_delete() {
    let engine = rule("permit", "delete", "s.read_ok_same_id_10m");
    let of = |ok: bool| known("read_ok_same_id_10m", ok);
    check(
        &engine,
        "delete",
        &json!({"id": "f"}),
        &[(of(true), true), (of(false), false)],
    );
}

#[test]
fn rule_06_no_mail_after_a_secret_was_read() {
    let engine = rule("forbid", "mail", "s.labels.contains(\"secret\")");
    let of = |labels: &[&str]| known("labels", texts(labels));
    let cases = [
        (of(&[]), true),
        (of(&["web"]), true),
        (of(&["web", "secret"]), false),
    ];
    check(&engine, "mail", &json!({"to": "a"}), &cases);
}

#[test]
fn rule_07_a_pause_after_a_failure() {
    let engine = rule(
        "forbid",
        "charge",
        "s has charge_failed_at && now.durationSince(s.charge_failed_at) <= duration(\"5m\")",
    );
    let cases = [
        (SessionFacts::new(), true),
        (ago("charge_failed_at", 5), false),
        (ago("charge_failed_at", 6), true),
    ];
    check(&engine, "charge", &json!({"order": "o"}), &cases);
}

#[test]
fn rule_08_two_approvers_who_are_not_the_requester() {
    let engine = rule("permit", "pay", "s.approvers_distinct_same_1h >= 2");
    let of = |count: i64| known("approvers_distinct_same_1h", count);
    check(&engine, "pay", &pay(), &[(of(1), false), (of(2), true)]);
}

#[test]
fn rule_09_only_to_an_account_that_a_lookup_returned() {
    let engine = rule("permit", "pay", "s.lookup_accounts_ok_1h.contains(i.to)");
    let of = |accounts: &[&str]| known("lookup_accounts_ok_1h", texts(accounts));
    let cases = [
        (of(&[]), false),
        (of(&["acc-2"]), false),
        (of(&["acc-2", "acc-1"]), true),
    ];
    check(&engine, "pay", &pay(), &cases);
}

#[test]
fn rule_10_tests_are_green_and_nothing_was_edited_since() {
    let engine = rule(
        "permit",
        "deploy",
        "s has tests_ok_at && now.durationSince(s.tests_ok_at) <= duration(\"2h\") && \
         (if s has edit_admitted_at then s.edit_admitted_at < s.tests_ok_at else true)",
    );
    let both =
        |tests, edit| ago("tests_ok_at", tests).set_time("edit_admitted_at", NOW - edit * MINUTE);
    let cases = [
        (SessionFacts::new(), false),
        (ago("tests_ok_at", 120), true),
        (ago("tests_ok_at", 121), false),
        (both(10, 20), true),
        (both(20, 10), false),
        (both(10, 10), false),
    ];
    check(&engine, "deploy", &json!({"sha": "c0de"}), &cases);
}

#[test]
fn rule_11_refund_and_charge_exclude_each_other() {
    for (tool, fact) in [
        ("refund", "charge_admitted_at"),
        ("charge", "refund_admitted_at"),
    ] {
        let engine = rule(
            "forbid",
            tool,
            &format!("s has {fact} && now.durationSince(s.{fact}) <= duration(\"2m\")"),
        );
        let cases = [
            (SessionFacts::new(), true),
            (ago(fact, 1), false),
            (ago(fact, 3), true),
        ];
        check(&engine, tool, &json!({"order": "o"}), &cases);
    }
}

#[test]
fn rule_12_failures_of_lookup_lock_pay() {
    let engine = rule("forbid", "pay", "s.lookup_failed_10m >= 3");
    let of = |count: i64| known("lookup_failed_10m", count);
    check(&engine, "pay", &pay(), &[(of(2), true), (of(3), false)]);
}

#[test]
fn rule_13_at_most_two_pays_in_flight() {
    let engine = rule("forbid", "pay", "s.pay_in_flight >= 2");
    let of = |count: i64| known("pay_in_flight", count);
    check(&engine, "pay", &pay(), &[(of(1), true), (of(2), false)]);
}

#[test]
fn rule_14_never_the_same_arguments_again() {
    let engine = rule("forbid", "mail", "s.same_args_admitted > 0");
    let of = |count: i64| known("same_args_admitted", count);
    check(
        &engine,
        "mail",
        &json!({"to": "a"}),
        &[(of(0), true), (of(1), false)],
    );
    let engine = rule("forbid", "mail", "s.this.same_args_admitted > 0");
    let of = |count: i64| known("this.same_args_admitted", count);
    check(
        &engine,
        "mail",
        &json!({"to": "a"}),
        &[(of(0), true), (of(1), false)],
    );
}

#[test]
fn a_fact_that_is_missing_or_of_another_type_denies_whatever_else_is_permitted() {
    // The permit for approvals reads nothing, and must not be reached.
    let text = "@id(\"a\") permit (principal, action == Action::\"pay\", resource);
         @id(\"b\") permit (principal, action == Action::\"pay with approval\", resource);
         @id(\"f\") forbid (principal, action == Action::\"pay\", resource)
         when { context.session.pay_admitted_1h >= 3 };";
    let engine = load_with(settings(), text).unwrap();
    let user = User::new("u");
    let arguments = pay();
    let decide = |session: Option<&SessionFacts>| {
        engine.current().decide(&Call {
            tool: "pay",
            arguments: &arguments,
            user: &user,
            agent: "a",
            run: "r",
            step: 0,
            now: NOW,
            facts: Facts {
                session,
                ..Facts::default()
            },
        })
    };
    let wrong = [
        known("pay_admitted_1h", "1"),
        known("pay_admitted_1h", true),
        known("pay_admitted", 1),
        SessionFacts::fresh("s", "a", NOW),
    ];
    for session in wrong.iter().map(Some).chain([None]) {
        let decision = decide(session);
        assert_eq!(decision.outcome, Outcome::Deny, "{session:?}");
        let error = decision.errors[0].to_string();
        assert!(error.contains("context.session.pay_admitted_1h"), "{error}");
    }
    assert_eq!(
        decide(Some(&known("pay_admitted_1h", 1))).outcome,
        Outcome::Allow
    );
}

#[test]
fn only_what_policies_read_about_an_action_has_to_be_computed() {
    let text = "@id(\"p\") permit (principal, action == Action::\"pay\", resource)
         when { context.session.pay_admitted_1h < 3 && context.session.this.failed == 0 };
         @id(\"q\") permit (principal, action == Action::\"pay with approval\", resource)
         when { context.session has charge_failed_at };
         @id(\"r\") permit (principal, action == Action::\"approve pay\", resource)
         when { context.session.labels.contains(\"x\") };
         @id(\"m\") permit (principal, action == Action::\"mail\", resource);
         @id(\"l\") @mode(\"log_only\") forbid (principal, action == Action::\"mail\", resource)
         when { context.session.depth > 3 };";
    let without_q = text.replace("charge_failed_at", "edit_admitted_at");
    let error = load_with(settings(), text).expect_err("pay has no `order`");
    assert!(
        error.to_string().contains("compares the argument `order`"),
        "{error}"
    );
    let set = load_with(settings(), &without_q).unwrap().current();
    let names = |tool: &str, questions: &[Question]| -> Vec<String> {
        set.session_facts(tool, questions)
            .into_iter()
            .map(|fact| fact.name.to_owned())
            .collect()
    };
    assert_eq!(
        names("pay", &[Question::Unattended]),
        ["this.failed", "pay_admitted_1h"]
    );
    assert_eq!(names("pay", &[Question::Approved]), ["edit_admitted_at"]);
    assert_eq!(names("pay", &[Question::Approve]), ["labels"]);
    assert_eq!(names("pay", &Question::ALL).len(), 4);
    assert_eq!(names("lookup", &Question::ALL), [""; 0]);
    assert_eq!(names("mail", &Question::ALL), ["depth"]);
    let all = set.session_facts("pay", &Question::ALL);
    let declared = all.iter().find(|f| f.name == "pay_admitted_1h").unwrap();
    assert_eq!(declared.declaration.unwrap().window, FactWindow::hours(1));
    assert_eq!(
        all.iter().find(|f| f.name == "labels").unwrap().declaration,
        None
    );
    assert!(
        set.schema_text()
            .contains("\"pay_cents_admitted_1h\": Long")
    );
    assert!(set.schema_text().contains("\"tests_ok_at\"?: datetime"));

    // What is only read in log-only mode is not needed for the decision.
    let user = User::new("u");
    let engine = load_with(settings(), &without_q).unwrap();
    let unknown = PolicyTest::new(&engine).session(SessionFacts::new());
    let decision = unknown
        .call("mail", &json!({"to": "a"}), &user)
        .explanation()
        .decision;
    assert_eq!(
        (decision.outcome, decision.errors.len()),
        (Outcome::Allow, 0)
    );
    let decision = unknown
        .call("mail", &json!({"to": "a"}), &user)
        .fact("depth", 4)
        .explanation()
        .decision;
    assert_eq!(decision.outcome, Outcome::Allow);
    assert_eq!(decision.shadow.unwrap().outcome, Outcome::Deny);
}

#[test]
fn a_session_handled_as_a_whole_needs_all_of_it() {
    let text = "@id(\"m\") permit (principal, action == Action::\"mail\", resource)
         when { context.session == context.session };";
    let set = load_with(settings(), text).unwrap().current();
    let read = set.session_facts("mail", &[Question::Unattended]);
    assert!(
        read.iter().any(|fact| fact.name == "this.declined"),
        "{read:?}"
    );
    assert!(
        read.iter().any(|fact| fact.name == "pay_in_flight"),
        "{read:?}"
    );
}

#[test]
fn what_the_host_does_not_compute_does_not_load_and_does_not_reload() {
    let reads = |fact: &str| {
        format!(
            "@id(\"m\") permit (principal, action == Action::\"mail\", resource)\nwhen {{ {fact} }};"
        )
    };
    let settings = settings().host_facts(HostFacts::only(["id", "started_at", "pay_in_flight"]));
    let engine = load_with(settings.clone(), &reads("context.session.id like \"a*\"")).unwrap();
    let before = engine.current().digest();
    for fact in [
        "context.session.depth < 2",
        "context.session.this.ok == 0",
        "context.session has this.last_ok_at",
        "context.session.pay_admitted_1h < 3",
        "context.session == context.session",
        "context == context",
        "(if true then context.session else context.session).depth < 2",
        "{\"x\": context.session}.x.depth < 2",
    ] {
        let error = load_with(settings.clone(), &reads(fact)).expect_err(fact);
        let text = error.to_string();
        assert!(
            text.starts_with("rules.cedar:2:") || text.starts_with("rules.cedar:1:"),
            "{text}"
        );
        assert!(
            text.contains("policy `m`") && text.contains("not computed by this host"),
            "{text}"
        );
        engine
            .reload(&[PolicySource::new("rules.cedar", reads(fact))])
            .expect_err(fact);
        assert_eq!(engine.current().digest(), before);
    }
    let text = reads("context.session.pay_in_flight < 3");
    engine
        .reload(&[PolicySource::new("rules.cedar", text)])
        .unwrap();
}

#[test]
fn a_misspelt_fact_does_not_load_and_the_likely_one_is_named() {
    let text = "@id(\"p\") forbid (principal, action == Action::\"pay\", resource)\n\
                when { context.session.pay_admited_1h >= 3 };";
    let error = load_with(settings(), text)
        .expect_err("misspelt")
        .to_string();
    println!("{error}");
    assert!(error.starts_with("rules.cedar:2:24: policy `p`"), "{error}");
    assert!(
        error.contains("did you mean `context.session.pay_admitted_1h`"),
        "{error}"
    );
    let wrong_type = text.replace("pay_admited_1h >= 3", "pay_admitted_1h");
    load_with(settings(), &wrong_type).expect_err("a Long is no condition");
    let unguarded = text.replace(
        "pay_admited_1h >= 3",
        "edit_admitted_at > context.system.now",
    );
    load_with(settings(), &unguarded).expect_err("it may be absent");
}

#[test]
fn declarations_that_cannot_be_meant_are_refused() {
    use FactKind as Kind;
    let hour = FactWindow::hours(1);
    let fact = |kind, tool: &str| FactDeclaration::new("f", kind, tool, hour, FactScope::Tenant);
    let sum = |path: &str| Kind::SumAdmitted { path: input(path) };
    for (wrong, part) in [
        (fact(Kind::CountOk, "nope"), "`nope` is not declared"),
        (fact(sum("to"), "pay"), "not an integer"),
        (fact(sum("cent"), "pay"), "no argument `cent`"),
        (
            fact(
                Kind::SumAdmitted {
                    path: ValuePath::Output("x".to_owned()),
                },
                "pay",
            ),
            "output does not exist",
        ),
        (fact(Kind::ExistsOk, "pay").same(["id"]), "no argument `id`"),
        (
            FactDeclaration {
                window: FactWindow::Session,
                ..fact(Kind::CountOk, "pay")
            },
            "no session",
        ),
        (
            FactDeclaration {
                name: "labels".to_owned(),
                ..fact(Kind::CountOk, "pay")
            },
            "always present",
        ),
        (
            FactDeclaration {
                tools: BTreeSet::new(),
                ..fact(Kind::CountOk, "pay")
            },
            "no tool",
        ),
        (
            fact(
                Kind::Unspent {
                    uses: BTreeSet::new(),
                },
                "pay",
            ),
            "no tool uses",
        ),
        (
            fact(
                Kind::ValuesOk {
                    path: input("to"),
                    of: AttributeType::Decimal,
                },
                "pay",
            ),
            "cannot be collected",
        ),
    ] {
        let error = load_with(Settings::default().fact(wrong), "")
            .expect_err(part)
            .to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    let twice = Settings::default()
        .fact(fact(Kind::CountOk, "pay"))
        .fact(fact(Kind::CountFailed, "pay"));
    assert!(
        load_with(twice, "")
            .expect_err("twice")
            .to_string()
            .contains("twice")
    );
}

#[test]
fn a_changed_window_changes_the_slices_that_read_the_fact_and_no_other() {
    let text = "@id(\"p\") forbid (principal, action == Action::\"pay\", resource)
         when { context.session.pay_admitted_1h >= 3 };
         @id(\"m\") permit (principal, action == Action::\"mail\", resource);";
    let before = load_with(settings(), text).unwrap().current();
    let mut changed = settings();
    changed.facts[0].window = FactWindow::hours(2);
    let after = load_with(changed, text).unwrap().current();
    assert_ne!(before.digest(), after.digest());
    assert_ne!(before.slice_digest("pay"), after.slice_digest("pay"));
    assert_eq!(before.slice_digest("mail"), after.slice_digest("mail"));
    assert_eq!(
        settings().longest_window(),
        Some(std::time::Duration::from_hours(24))
    );
}

#[test]
fn declarations_can_be_written_as_json() {
    for fact in declarations() {
        let json = serde_json::to_value(&fact).unwrap();
        let back: FactDeclaration = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(back, fact, "{json}");
    }
    let json = json!({
        "name": "pay_cents_admitted_1h30m", "kind": {"sum_admitted": {"path": {"input": "cents"}}},
        "tools": ["pay"], "window": "1h30m", "scope": "principal"
    });
    let fact: FactDeclaration = serde_json::from_value(json).unwrap();
    assert_eq!(fact.window, FactWindow::minutes(90));
    for wrong in [
        "",
        "1",
        "h",
        "0h",
        "1m1h",
        "1h1h",
        "99999999999999999999d",
        "-1h",
    ] {
        wrong.parse::<FactWindow>().expect_err(wrong);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn every_window_reads_back_as_it_was_written(millis in 1_u64..10_000_000_000) {
        let window = FactWindow::Last(std::time::Duration::from_millis(millis));
        prop_assert_eq!(window.to_string().parse::<FactWindow>(), Ok(window));
    }
}

#[test]
fn every_value_of_a_declared_type_is_a_valid_request_and_every_other_denies() {
    let kinds = [
        AttributeType::Bool,
        AttributeType::Long,
        AttributeType::String,
        AttributeType::Datetime,
        AttributeType::Decimal,
        AttributeType::Strings,
        AttributeType::Longs,
    ];
    let values: Vec<(AttributeValue, &[AttributeType])> = vec![
        (true.into(), &kinds[..1]),
        (i64::MIN.into(), &kinds[1..2]),
        ("x".into(), &kinds[2..3]),
        ("2026-01-01T00:00:00Z".into(), &kinds[2..4]),
        (
            "12.5".into(),
            &[AttributeType::String, AttributeType::Decimal],
        ),
        (texts(&["a"]).into(), &kinds[5..6]),
        (BTreeSet::from([1_i64]).into(), &kinds[6..]),
        (BTreeSet::<i64>::new().into(), &kinds[5..]),
        ("x".repeat(65_537).into(), &[]),
        ((0..10_001_i64).collect::<BTreeSet<i64>>().into(), &[]),
    ];
    let user = User::new("u");
    for kind in kinds {
        let declared = tool("t", &json!({})).derived("d", kind);
        let text = "@id(\"p\") permit (principal, action == Action::\"t\", resource)
             when { context.derived.d == context.derived.d };";
        let engine = PolicyEngine::load(vec![declared], &[PolicySource::new("p", text)]).unwrap();
        let tested = PolicyTest::new(&engine);
        for (value, fits) in &values {
            let decision = tested
                .call("t", &json!({}), &user)
                .derived("d", value.clone())
                .explanation()
                .decision;
            if fits.contains(&kind) {
                assert_eq!(
                    (decision.outcome, decision.errors.len()),
                    (Outcome::Allow, 0),
                    "{kind:?}"
                );
            } else {
                assert_eq!(decision.outcome, Outcome::Deny, "{kind:?}");
                assert!(decision.errors[0].message.contains("derived fact `d`"));
            }
        }
        let missing = tested.call("t", &json!({}), &user).explanation().decision;
        assert_eq!(missing.outcome, Outcome::Deny);
        let undeclared = tested
            .call("t", &json!({}), &user)
            .derived("e", 1)
            .explanation()
            .decision;
        assert_eq!(undeclared.outcome, Outcome::Deny);
    }
}

#[test]
fn a_permit_on_a_list_or_a_group_of_tools_may_read_the_past() {
    for scope in [
        "action in [Action::\"pay\", Action::\"mail\"]",
        "action in Action::\"all tools unattended\"",
    ] {
        let text = format!(
            "@id(\"first\") permit (principal, {scope}, resource)\n\
             when {{ !context.session.labels.contains(\"web\") }};\n\
             @id(\"ask\") permit (principal, action == Action::\"pay with approval\", resource);"
        );
        let engine = load_with(settings(), &text).unwrap_or_else(|error| panic!("{error}"));
        for (labels, outcome) in [
            (texts(&[]), Outcome::Allow),
            (texts(&["web"]), Outcome::RequireApproval { quorum: 1 }),
        ] {
            let in_session = PolicyTest::new(&engine).session(known("labels", labels));
            let user = User::new("u");
            let decision = in_session.call("pay", &pay(), &user).explanation().decision;
            assert_eq!(decision.outcome, outcome, "{scope}: {decision:?}");
        }
    }
}
