//! What a decision costs, as ratios to one raw `is_authorized` with one policy.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "benches may"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use agentkit_policy::{Call, Facts, Outcome, PolicyEngine, PolicySource, ToolDeclaration, User};
use cedar_policy::{Authorizer, Context, Entities, Entity, EntityUid, PolicySet, Request};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

const REFUND_DESK: &str = include_str!("../tests/policy/refund_desk.cedar");

fn refund_tool(name: &str) -> ToolDeclaration {
    ToolDeclaration::new(
        name,
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

fn refund(amount_cents: i64) -> Value {
    json!({"order_id": "o-1", "amount_cents": amount_cents, "country": "DE"})
}

fn call<'a>(tool: &'a str, arguments: &'a Value, user: &'a User) -> Call<'a> {
    Call {
        tool,
        arguments,
        user,
        agent: "refund-desk",
        run: "0198c0de-0000-7000-8000-000000000000",
        step: 3,
        now: 1_770_000_000_000_000,
        facts: Facts::default(),
    }
}

/// `tools` tools, and `each` policies for each of them; every policy is about a role of its own.
fn many(tools: usize, each: usize) -> (Vec<ToolDeclaration>, String) {
    let declared = (0..tools).map(|n| refund_tool(&format!("t{n}"))).collect();
    let mut text = String::new();
    for tool in 0..tools {
        for policy in 0..each {
            let _ = writeln!(
                text,
                "@id(\"p{tool}-{policy}\") permit (principal in Role::\"r{policy}\", \
                 action == Action::\"t{tool}\", resource) \
                 when {{ context.input.amount_cents < {} }};",
                policy + 1000
            );
        }
    }
    (declared, text)
}

fn load(tools: Vec<ToolDeclaration>, text: &str) -> PolicyEngine {
    PolicyEngine::load(tools, &[PolicySource::new("bench", text)])
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Median of the time of one round, in nanoseconds.
fn median(mut round: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..41)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..100 {
                round();
            }
            start.elapsed().as_secs_f64() * 1e7
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[20]
}

/// A row of the table: what, the figure, what it is compared with, and the ratio to be reached.
fn row(what: &str, figure: f64, raw: f64, bar: Option<f64>) {
    let ratio = figure / raw;
    let (bar, met) = match bar {
        Some(bar) => (
            format!("{bar}"),
            if ratio <= bar { "met" } else { "MISSED" },
        ),
        None => ("-".to_owned(), ""),
    };
    println!("{what:<52} {figure:>9.0} ns {raw:>8.0} ns {ratio:>8.2} {bar:>6} {met}");
}

fn benches(criterion: &mut Criterion) {
    let clerk = User::new("clara").role("clerk");
    let engine = load(vec![refund_tool("issue_refund")], REFUND_DESK);
    let set = engine.current();

    let uid = |text: &str| text.parse::<EntityUid>().unwrap();
    let role = uid("Role::\"clerk\"");
    let user = Entity::new_no_attrs(uid("User::\"clara\""), [role.clone()].into());
    let entities = Entities::from_entities([user, Entity::with_uid(role)], None).unwrap();
    let context = Context::from_json_value(json!({"input": refund(100)}), None).unwrap();
    let request = Request::new(
        uid("User::\"clara\""),
        uid("Action::\"issue_refund\""),
        uid("Agent::\"a\""),
        context,
        None,
    )
    .unwrap();
    let one: PolicySet =
        "permit (principal in Role::\"clerk\", action == Action::\"issue_refund\", \
                          resource) when { context.input.amount_cents < 5000 };"
            .parse()
            .unwrap();
    let raw = || {
        black_box(Authorizer::new().is_authorized(&request, &one, &entities));
    };
    let (small, large) = (refund(100), refund(200_000));
    let allow = || {
        let decision = set.decide(&call("issue_refund", &small, &clerk));
        assert_eq!(black_box(decision).outcome, Outcome::Allow);
    };
    let approval = || {
        let decision = set.decide(&call("issue_refund", &large, &clerk));
        assert_eq!(
            black_box(decision).outcome,
            Outcome::RequireApproval { quorum: 2 }
        );
    };
    println!(
        "{:<52} {:>12} {:>11} {:>8} {:>6}",
        "what", "ours", "raw", "ratio", "bar"
    );
    let unit = median(raw);
    row("decide, Allow (6 policies)", median(allow), unit, Some(5.0));
    row(
        "decide, RequireApproval(2) (6 policies)",
        median(approval),
        median(raw),
        Some(15.0),
    );

    // Someone in one role, whose one policy permits.
    let someone = User::new("s").role("r0");
    for count in [1, 10, 100, 1_000, 10_000] {
        let (tools, text) = many(1, count);
        let set = load(tools, &text).current();
        let call = call("t0", &small, &someone);
        let decide = || {
            let decision = set.decide(&call);
            assert_eq!(black_box(decision).outcome, Outcome::Allow);
        };
        let plain: PolicySet = text.parse().unwrap();
        let own = Entity::new_no_attrs(uid("User::\"s\""), [uid("Role::\"r0\"")].into());
        let entities =
            Entities::from_entities([own, Entity::with_uid(uid("Role::\"r0\""))], None).unwrap();
        let request = Request::new(
            uid("User::\"s\""),
            uid("Action::\"t0\""),
            uid("Agent::\"a\""),
            Context::from_json_value(json!({"input": refund(100)}), None).unwrap(),
            None,
        )
        .unwrap();
        let unsliced = {
            let start = Instant::now();
            black_box(Authorizer::new().is_authorized(&request, &plain, &entities));
            start.elapsed().as_secs_f64() * 1e9
        };
        let bar = (count == 1_000).then_some(10.0);
        row(
            &format!("decide, {count} policies on one tool"),
            median(decide),
            median(raw),
            bar,
        );
        println!(
            "{:<52} {unsliced:>9.0} ns",
            "  the same on plain Cedar, once"
        );
    }
    let spread = |tools: usize, each: usize| {
        let (tools, text) = many(tools, each);
        load(tools, &text).current()
    };
    let (ten, wide) = (spread(1, 10), spread(1_000, 10));
    let of_ten = || {
        black_box(ten.decide(&call("t0", &small, &someone)));
    };
    let of_wide = || {
        black_box(wide.decide(&call("t500", &small, &someone)));
    };
    let reference = median(of_ten);
    row(
        "10,000 policies over 1,000 tools, against 10 on one",
        median(of_wide),
        reference,
        Some(1.2),
    );
    let (tools, text) = many(1_000, 1);
    let start = Instant::now();
    black_box(load(tools, &text));
    println!(
        "load, validate, slice 1,000 policies over 1,000 tools: {:.2} s (bar 1 s)",
        start.elapsed().as_secs_f64()
    );

    criterion.bench_function("raw", |bencher| bencher.iter(raw));
    criterion.bench_function("allow", |bencher| bencher.iter(allow));
    criterion.bench_function("require_approval_2", |bencher| bencher.iter(approval));
}

criterion_group!(decide, benches);
criterion_main!(decide);
