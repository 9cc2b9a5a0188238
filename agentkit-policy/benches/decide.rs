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

use agentkit_policy::{
    Call, Facts, Outcome, PolicyEngine, PolicySet as AgentkitSet, PolicySource, ToolDeclaration,
    User,
};
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

/// Median of the time of one round, in nanoseconds. Few calls are timed at once, so that on a busy
/// machine most measurements are not interrupted.
fn median(mut round: impl FnMut()) -> f64 {
    const CALLS: u32 = 5;
    let mut times: Vec<f64> = (0..801)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                round();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[400]
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

/// One raw question to Cedar, everything made ready before.
struct Raw {
    request: Request,
    policies: PolicySet,
    entities: Entities,
}

fn uid(text: &str) -> EntityUid {
    text.parse().unwrap()
}

impl Raw {
    fn new(tool: &str, role: &str, policies: &str) -> Self {
        let role = uid(&format!("Role::\"{role}\""));
        let user = Entity::new_no_attrs(uid("User::\"u\""), [role.clone()].into());
        let context = Context::from_json_value(json!({"input": refund(100)}), None).unwrap();
        Self {
            request: Request::new(
                uid("User::\"u\""),
                uid(&format!("Action::\"{tool}\"")),
                uid("Agent::\"a\""),
                context,
                None,
            )
            .unwrap(),
            policies: policies.parse().unwrap(),
            entities: Entities::from_entities([user, Entity::with_uid(role)], None).unwrap(),
        }
    }

    fn one() -> Self {
        let policy = "permit (principal in Role::\"clerk\", action == Action::\"issue_refund\", \
                      resource) when { context.input.amount_cents < 5000 };";
        Self::new("issue_refund", "clerk", policy)
    }

    fn ask(&self) {
        black_box(Authorizer::new().is_authorized(&self.request, &self.policies, &self.entities));
    }
}

/// The table: what, our figure, the raw one, their ratio, the bar.
fn table(raw: &Raw, set: &AgentkitSet) {
    println!(
        "{:<52} {:>12} {:>11} {:>8} {:>6}",
        "what", "ours", "raw", "ratio", "bar"
    );
    let unit = || median(|| raw.ask());
    let clerk = User::new("clara").role("clerk");
    let (small, large) = (refund(100), refund(200_000));
    for (what, arguments, outcome, bar) in [
        ("decide, Allow (6 policies)", &small, Outcome::Allow, 5.0),
        (
            "decide, RequireApproval(2) (6 policies)",
            &large,
            Outcome::RequireApproval { quorum: 2 },
            15.0,
        ),
    ] {
        let figure = median(|| {
            let decision = set.decide(&call("issue_refund", arguments, &clerk));
            assert_eq!(black_box(decision).outcome, outcome);
        });
        row(what, figure, unit(), Some(bar));
    }
    // Someone in one role, whose one policy permits.
    let someone = User::new("s").role("r0");
    for count in [1, 10, 100, 1_000, 10_000] {
        let (tools, text) = many(1, count);
        let set = load(tools, &text).current();
        let figure = median(|| {
            let decision = set.decide(&call("t0", &small, &someone));
            assert_eq!(black_box(decision).outcome, Outcome::Allow);
        });
        let bar = (count == 1_000).then_some(10.0);
        row(
            &format!("decide, {count} policies on one tool"),
            figure,
            unit(),
            bar,
        );
        let plain = Raw::new("t0", "r0", &text);
        let start = Instant::now();
        plain.ask();
        let once = start.elapsed().as_secs_f64() * 1e9;
        println!("{:<52} {once:>9.0} ns", "  the same in plain Cedar, once");
    }
    let spread = |tools: usize, each: usize| {
        let (tools, text) = many(tools, each);
        load(tools, &text).current()
    };
    let (ten, wide) = (spread(1, 10), spread(1_000, 10));
    let of_ten = median(|| {
        black_box(ten.decide(&call("t0", &small, &someone)));
    });
    let of_wide = median(|| {
        black_box(wide.decide(&call("t500", &small, &someone)));
    });
    row(
        "10,000 policies over 1,000 tools, against 10 on one",
        of_wide,
        of_ten,
        Some(1.2),
    );
    let (tools, text) = many(1_000, 1);
    let start = Instant::now();
    black_box(load(tools, &text));
    let seconds = start.elapsed().as_secs_f64();
    println!("load, validate, slice 1,000 policies over 1,000 tools: {seconds:.2} s (bar 1 s)");
}

fn benches(criterion: &mut Criterion) {
    let raw = Raw::one();
    let set = load(vec![refund_tool("issue_refund")], REFUND_DESK).current();
    table(&raw, &set);

    let clerk = User::new("clara").role("clerk");
    criterion.bench_function("raw", |bencher| bencher.iter(|| raw.ask()));
    for (name, arguments) in [
        ("allow", refund(100)),
        ("require_approval_2", refund(200_000)),
    ] {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| set.decide(&call("issue_refund", &arguments, &clerk)));
        });
    }
}

criterion_group!(decide, benches);
criterion_main!(decide);
