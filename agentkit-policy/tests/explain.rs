//! Decisions are explained down to the clause; shadow policies are recorded and never decide.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use agentkit_policy::testing::PolicyTest;
use agentkit_policy::{
    Approvals, Call, Facts, Outcome, PolicyEngine, PolicySource, Question, ToolDeclaration, User,
};
use serde::Serialize;
use serde_json::json;

#[derive(Serialize)]
struct Refund {
    order_id: &'static str,
    amount_cents: i64,
    country: &'static str,
}

fn tool() -> ToolDeclaration {
    ToolDeclaration::new(
        "issue_refund",
        json!({
            "type": "object",
            "properties": {
                "order_id": {"type": "string"},
                "amount_cents": {"type": "integer"},
                "country": {"type": "string"}
            },
            "required": ["order_id", "amount_cents", "country"]
        }),
    )
}

fn engine(more: &str) -> PolicyEngine {
    PolicyEngine::load(
        vec![tool()],
        &[
            PolicySource::new(
                "refund_desk.cedar",
                include_str!("policy/refund_desk.cedar"),
            ),
            PolicySource::new("more.cedar", more),
        ],
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

fn refund(amount_cents: i64, country: &'static str) -> Refund {
    Refund {
        order_id: "o-1",
        amount_cents,
        country,
    }
}

#[test]
fn the_harness_states_the_refund_desk() {
    let engine = engine("");
    let policies = PolicyTest::new(&engine).at(1_770_000_000_000_000);
    let clerk = User::new("clara").role("clerk").role("finance");
    let call = |cents, country| policies.call("issue_refund", &refund(cents, country), &clerk);
    call(4_999, "DE").allowed();
    call(5_000, "DE")
        .requires_approval(1)
        .may_approve(&User::new("fay").role("finance"))
        .may_not_approve(&User::new("olaf"))
        .may_not_approve(&clerk);
    call(100_001, "DE").requires_approval(2);
    call(1, "KP").denied_by("never-to-sanctioned-countries");
    let stranger = User::new("s");
    policies
        .call("issue_refund", &refund(1, "DE"), &stranger)
        .denied_by_default();
}

#[test]
#[should_panic(expected = "expected to allow, got")]
fn the_harness_fails_where_the_outcome_differs() {
    let engine = engine("");
    let user = User::new("s");
    PolicyTest::new(&engine)
        .call("issue_refund", &refund(1, "DE"), &user)
        .allowed();
}

#[test]
#[should_panic(expected = "the evaluation was not clean")]
fn the_harness_fails_where_an_error_led_to_the_outcome() {
    let engine = engine(
        "@id(\"o\") forbid (principal, action == Action::\"issue_refund\", resource) \
         when { context.input.amount_cents * 2 > 5 };",
    );
    let user = User::new("s");
    PolicyTest::new(&engine)
        .call("issue_refund", &refund(i64::MAX, "DE"), &user)
        .denied_by("o");
}

#[test]
fn a_denial_by_default_names_the_nearest_permits_and_their_first_false_clause() {
    let engine = engine("");
    let user = User::new("s");
    let test = PolicyTest::new(&engine);
    let explanation = test
        .call("issue_refund", &refund(50_000, "DE"), &user)
        .explanation();
    println!("{explanation}");
    let nearest = &explanation.nearest[0];
    assert_eq!(nearest.fails, "principal in Role::\"clerk\"");
    assert!(
        explanation
            .nearest
            .iter()
            .any(|n| n.question == Question::Approved)
    );
    let shown = explanation.to_string();
    assert!(shown.contains("`issue_refund`: deny"), "{shown}");
    assert!(shown.contains("no policy permits it"), "{shown}");
    assert!(shown.contains("refund_desk.cedar:"), "{shown}");

    let narrow = PolicyEngine::load(
        vec![tool()],
        &[PolicySource::new(
            "n.cedar",
            "@id(\"n\") @title(\"Small ones\") permit (principal, action == Action::\"issue_refund\", resource)
             when { context.input.country == \"DE\" && context.input.amount_cents < 10 };",
        )],
    )
    .unwrap();
    let test = PolicyTest::new(&narrow);
    let explanation = test
        .call("issue_refund", &refund(50, "DE"), &user)
        .explanation();
    let nearest = &explanation.nearest[0];
    assert_eq!(nearest.holds.len(), 1);
    assert!(nearest.fails.contains("amount_cents"), "{nearest:?}");
    assert_eq!(nearest.error, None);
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["outcome"], "deny");
    assert_eq!(json["nearest"][0]["policy"]["title"], "Small ones");
}

#[test]
fn what_would_have_to_change_is_said() {
    let user = User::new("s").role("clerk");
    let changes = |when: &str| -> Vec<String> {
        let text = format!(
            "@id(\"p\") permit (principal in Role::\"clerk\", action == Action::\"issue_refund\", resource) when {{ {when} }};"
        );
        let engine = PolicyEngine::load(vec![tool()], &[PolicySource::new("p", text)]).unwrap();
        let explanation = PolicyTest::new(&engine)
            .call("issue_refund", &refund(50, "DE"), &user)
            .explanation();
        println!("{explanation}");
        explanation
            .nearest
            .into_iter()
            .filter_map(|miss| miss.change)
            .collect()
    };
    for (when, change) in [
        (
            "context.input.amount_cents < 10",
            "`context.input.amount_cents` would have to be less than 10; it is 50",
        ),
        (
            "10 >= context.input.amount_cents",
            "`context.input.amount_cents` would have to be at most 10; it is 50",
        ),
        (
            "!(context.input.amount_cents > 10)",
            "`context.input.amount_cents` would have to be at most 10; it is 50",
        ),
        (
            "[\"FR\", \"IT\"].contains(context.input.country)",
            "`context.input.country` would have to be one of [\"FR\", \"IT\"]; it is \"DE\"",
        ),
        (
            "context.input.country == \"FR\"",
            "`context.input.country` would have to be \"FR\"; it is \"DE\"",
        ),
        (
            "context.input.country == \"FR\" || context.input.amount_cents >= 60",
            "`context.input.country` would have to be \"FR\"; it is \"DE\", or \
             `context.input.amount_cents` would have to be at least 60; it is 50",
        ),
        (
            "context.input.amount_cents > context.run.step + 90",
            "`context.input.amount_cents` would have to be more than `context.run.step + 90`, \
             which is 90; it is 50",
        ),
        (
            "context.tool.destructive",
            "`context.tool.destructive` would have to be true",
        ),
        (
            "principal has tenant",
            "`principal` would have to have `tenant`",
        ),
    ] {
        assert_eq!(changes(when), [change], "{when}");
    }
    // What is said to change, changes the outcome.
    let stranger = User::new("x");
    let engine = engine("");
    let explanation = PolicyTest::new(&engine)
        .call("issue_refund", &refund(50, "DE"), &stranger)
        .explanation();
    assert_eq!(
        explanation.nearest[0].change.as_deref(),
        Some("the person for whom the agent acts would have to be in Role::\"clerk\"")
    );
}

#[test]
fn a_forbid_says_what_made_it_match_and_a_wait_says_who_may_end_it() {
    let engine = engine("");
    let clerk = User::new("c").role("clerk");
    let test = PolicyTest::new(&engine);
    let denied = test
        .call("issue_refund", &refund(50, "KP"), &clerk)
        .explanation();
    println!("{denied}\n");
    let blocking = &denied.blocking[0];
    assert_eq!(blocking.policy.id, "never-to-sanctioned-countries");
    assert_eq!(blocking.clauses.len(), 1);
    assert!(blocking.changes[0].contains("be none of"), "{blocking:?}");
    assert!(blocking.changes[0].contains("it is \"KP\""), "{blocking:?}");
    let waits = test
        .call("issue_refund", &refund(50_000, "DE"), &clerk)
        .explanation();
    println!("{waits}");
    assert_eq!(waits.approvers[0].policy.id, "finance-approves");
    assert!(
        waits
            .to_string()
            .contains("may approve: principal in Role::\"finance\"")
    );
}

#[test]
fn who_could_approve_is_listed() {
    let engine = engine("");
    let set = engine.current();
    let rules = set.approver_rules("issue_refund");
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].who, "principal in Role::\"finance\"");
    assert!(!rules[0].conditional);
    let clerk = User::new("clara").role("clerk").role("finance");
    let people = [
        clerk.clone(),
        User::new("fay").role("finance"),
        User::new("finn").role("finance"),
        User::new("olaf"),
    ];
    let arguments = serde_json::to_value(refund(6_000, "DE")).unwrap();
    let call = Call {
        tool: "issue_refund",
        arguments: &arguments,
        user: &clerk,
        agent: "a",
        run: "r",
        step: 0,
        now: 0,
        facts: Facts::default(),
    };
    let so_far = Approvals::requested_at(0).approved_by(people[1].clone());
    let who = set.who_may_approve(&call, &people, &so_far);
    assert_eq!(who, [&people[2]]);
}

#[test]
fn a_policy_in_log_only_mode_is_recorded_and_never_decides() {
    let engine = engine(
        "@id(\"trial\") @mode(\"log_only\") forbid (principal, action in Action::\"issue_refund\", resource)
         when { context.input.amount_cents > 100 };
         @id(\"trial-overflow\") @mode(\"log_only\") forbid (principal, action in Action::\"issue_refund\", resource)
         when { context.input.country == \"XX\" && context.input.amount_cents * 1000 > 100 };",
    );
    let without = self::engine("");
    assert_ne!(engine.current().digest(), without.current().digest());
    assert_eq!(
        engine.current().slice_digest("issue_refund"),
        without.current().slice_digest("issue_refund"),
        "what does not decide does not void approvals"
    );
    let clerk = User::new("c").role("clerk");
    let test = PolicyTest::new(&engine);
    let decide = |cents, country| {
        test.call("issue_refund", &refund(cents, country), &clerk)
            .explanation()
            .decision
    };
    assert_eq!(decide(50, "DE").shadow, None);
    let decision = decide(200, "DE");
    assert_eq!(decision.outcome, Outcome::Allow);
    let shadow = decision.shadow.unwrap();
    assert_eq!(shadow.outcome, Outcome::Deny);
    assert_eq!(shadow.determining[0].id, "trial");
    let decision = decide(i64::MAX, "XX");
    assert_eq!(decision.outcome, Outcome::RequireApproval { quorum: 2 });
    assert_eq!(decision.errors, []);
    assert_eq!(decision.shadow.unwrap().errors.len(), 1);
}

#[test]
fn annotations_advise_and_do_not_void_approvals() {
    let with = |annotation: &str| {
        engine(&format!(
            "{annotation} @id(\"x\") forbid (principal, action == Action::\"issue_refund\", resource)
             when {{ context.input.country == \"XX\" }};"
        ))
        .current()
    };
    let (plain, titled) = (with(""), with("@title(\"No XX\")"));
    assert_eq!(
        plain.slice_digest("issue_refund"),
        titled.slice_digest("issue_refund")
    );
    assert_ne!(plain.digest(), titled.digest());
}

#[test]
fn whoever_reads_a_decision_learns_who_answers_for_it_and_who_is_to_hear_of_it() {
    let engine = engine(
        "@id(\"no-xx\") @why(\"embargo\") @owner(\"finance\") @notify(\"duty-officer\")
         @severity(\"high\")
         forbid (principal, action == Action::\"issue_refund\", resource)
         when { context.input.country == \"XX\" };",
    );
    let explanation = PolicyTest::new(&engine)
        .call(
            "issue_refund",
            &refund(100, "XX"),
            &User::new("clara").role("clerk"),
        )
        .explanation();
    let policy = &explanation.decision.determining[0];
    assert_eq!(policy.owner.as_deref(), Some("finance"));
    assert_eq!(policy.notify.as_deref(), Some("duty-officer"));
    assert_eq!(policy.severity.as_deref(), Some("high"));
    let text = explanation.to_string();
    for said in ["why: embargo", "owner: finance", "severity: high"] {
        assert!(text.contains(said), "{text}");
    }
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["determining"][0]["notify"], "duty-officer");
}

#[test]
fn what_is_worth_a_look_is_a_warning() {
    let pay = ToolDeclaration {
        require_approval: true,
        ..ToolDeclaration::new(
            "pay",
            json!({"type": "object", "properties": {"order": {"type": "object", "properties": {"amount": {"type": "number"}}}}}),
        )
    };
    let engine = PolicyEngine::load(
        vec![pay],
        &[PolicySource::new(
            "w.cedar",
            "@id(\"blanket\") permit (principal, action == Action::\"pay\", resource);
             @id(\"adds\") forbid (principal, action, resource) when { context.run.step + 1 > 5 };",
        )],
    )
    .unwrap();
    let set = engine.current();
    let warnings: Vec<String> = set.warnings().iter().map(ToString::to_string).collect();
    println!("{}", warnings.join("\n"));
    for part in [
        "tool `pay`: the tool demands approval",
        "tool `pay`: argument `order.amount`: the argument looks like money",
        "w.cedar:2:14: policy `adds`: the forbid computes",
        "w.cedar:1:1: policy `blanket`: the permit lets anyone",
    ] {
        assert!(warnings.iter().any(|w| w.starts_with(part)), "{part}");
    }
    let quiet = self::engine("").current();
    assert_eq!(quiet.warnings(), []);
}
