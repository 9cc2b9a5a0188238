//! The refund desk: the example that the documentation tells, decided as it tells it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use agentkit_policy::{
    Approvals, Call, Facts, Outcome, PolicyEngine, PolicySource, ToolDeclaration, User, Verdict,
};
use serde_json::{Value, json};

const POLICIES: &str = include_str!("policy/refund_desk.cedar");
const HOUR: i64 = 3_600_000_000;
const NOW: i64 = 1_770_000_000_000_000;

fn tool() -> ToolDeclaration {
    ToolDeclaration::new(
        "issue_refund",
        json!({
            "type": "object",
            "properties": {
                "order_id": {"type": "string"},
                "amount_cents": {"type": "integer", "format": "int64"},
                "country": {"type": "string"},
                "note": {"type": ["string", "null"]}
            },
            "required": ["order_id", "amount_cents", "country"],
            "additionalProperties": false
        }),
    )
}

fn engine() -> PolicyEngine {
    PolicyEngine::load(
        vec![tool()],
        &[PolicySource::new("refund_desk.cedar", POLICIES)],
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

fn refund(amount_cents: i64, country: &str) -> Value {
    json!({"order_id": "o-1", "amount_cents": amount_cents, "country": country})
}

fn clerk() -> User {
    User::new("clara").role("clerk")
}

fn finance(id: &str) -> User {
    User::new(id).role("finance")
}

fn call<'a>(arguments: &'a Value, user: &'a User) -> Call<'a> {
    Call {
        tool: "issue_refund",
        arguments,
        user,
        agent: "refund-desk",
        run: "run-1",
        step: 0,
        now: NOW,
        facts: Facts::default(),
    }
}

fn outcome(amount_cents: i64, country: &str, user: &User) -> Outcome {
    let engine = engine();
    let decision = engine
        .current()
        .decide(&call(&refund(amount_cents, country), user));
    assert_eq!(decision.errors, []);
    decision.outcome
}

#[test]
fn the_three_outcomes_are_decided_as_stated() {
    let two = Outcome::RequireApproval { quorum: 2 };
    let one = Outcome::RequireApproval { quorum: 1 };
    assert_eq!(outcome(4_999, "DE", &clerk()), Outcome::Allow);
    assert_eq!(outcome(5_000, "DE", &clerk()), one);
    assert_eq!(outcome(100_000, "DE", &clerk()), one);
    assert_eq!(outcome(100_001, "DE", &clerk()), two);
    assert_eq!(outcome(1, "KP", &clerk()), Outcome::Deny);
    assert_eq!(outcome(100_001, "IR", &clerk()), Outcome::Deny);
    assert_eq!(outcome(1, "DE", &User::new("stranger")), Outcome::Deny);
}

#[test]
fn a_denial_names_the_forbid_and_an_approval_the_permit() {
    let engine = engine();
    let set = engine.current();
    let ids = |amount, country| -> Vec<String> {
        set.decide(&call(&refund(amount, country), &clerk()))
            .determining
            .into_iter()
            .map(|policy| policy.id)
            .collect()
    };
    assert_eq!(ids(1, "SY"), ["never-to-sanctioned-countries"]);
    assert_eq!(ids(1, "DE"), ["small-refunds-run-alone"]);
    assert_eq!(ids(6_000, "DE"), ["larger-refunds-need-one-approval"]);
    assert_eq!(ids(200_000, "DE"), ["very-large-refunds-need-two"]);
}

#[test]
fn release_counts_distinct_permitted_people_in_time() {
    let engine = engine();
    let set = engine.current();
    let clerk = clerk();
    let arguments = refund(200_000, "DE");
    let call = call(&arguments, &clerk);
    let asked = || Approvals::requested_at(NOW - HOUR);
    let verdict = |approvals: Approvals| set.release(&call, &approvals).verdict;

    let wait = Verdict::Wait { quorum: 2 };
    assert_eq!(verdict(asked()), wait);
    assert_eq!(verdict(asked().approved_by(finance("fay"))), wait);
    let twice = asked()
        .approved_by(finance("fay"))
        .approved_by(finance("fay"));
    assert_eq!(verdict(twice), wait, "one vote a person");
    let outsider = asked()
        .approved_by(finance("fay"))
        .approved_by(User::new("olaf"));
    assert_eq!(verdict(outsider), wait, "the second may not approve");
    let both = || {
        asked()
            .approved_by(finance("fay"))
            .approved_by(finance("finn"))
    };
    let release = set.release(&call, &both());
    assert_eq!(release.verdict, Verdict::Run);
    assert_eq!(release.counted, ["fay", "finn"]);

    let mut future = both();
    future.requested_at = NOW + 1;
    assert_eq!(verdict(future), wait, "asked for in the future");
    let mut old = both();
    old.requested_at = NOW - 24 * HOUR - 1_000_000;
    assert_eq!(verdict(old), wait, "asked for too long ago");
    let more = both().demanding(3);
    assert_eq!(verdict(more), Verdict::Wait { quorum: 3 });
}

#[test]
fn the_requester_does_not_approve_their_own_call() {
    let engine = engine();
    let set = engine.current();
    let both_roles = User::new("clara").role("clerk").role("finance");
    let arguments = refund(6_000, "DE");
    let call = call(&arguments, &both_roles);
    let asked = Approvals::requested_at(NOW);

    let own = set.may_approve(&call, &both_roles, &asked);
    assert!(!own.permitted);
    assert_eq!(own.determining[0].id, "nobody-approves-their-own");
    assert!(set.may_approve(&call, &finance("fay"), &asked).permitted);
    assert!(!set.may_approve(&call, &clerk(), &asked).permitted);

    let release = set.release(&call, &asked.approved_by(both_roles.clone()));
    assert_eq!(release.verdict, Verdict::Wait { quorum: 1 });
    assert_eq!(release.refused[0].approver, "clara");
}

#[test]
fn an_agent_never_approves() {
    let engine = engine();
    let arguments = refund(6_000, "DE");
    let clerk = clerk();
    let call = call(&arguments, &clerk);
    let approvals = Approvals::requested_at(NOW).approved_by(finance("refund-desk"));
    let release = engine.current().release(&call, &approvals);
    assert_eq!(release.verdict, Verdict::Wait { quorum: 1 });
    assert_eq!(release.refused[0].why, "an agent cannot approve");
}
