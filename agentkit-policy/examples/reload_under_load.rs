//! Reloads a hundred times a second while eight threads decide: every decision is made under one
//! whole set. Prints the throughput with and without reloads.
//!
//! `cargo run --release -p agentkit-policy --example reload_under_load [seconds]`

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agentkit_policy::{Call, Facts, Outcome, PolicyEngine, PolicySource, ToolDeclaration, User};
use serde_json::json;

const THREADS: usize = 8;

/// Two permits that always match together. `name` is in the ids of both.
fn policies(name: &str) -> [PolicySource; 2] {
    ["first", "second"].map(|part| {
        PolicySource::new(
            format!("{part}.cedar"),
            format!(
                "@id(\"{name}-{part}\") permit (principal, action == Action::\"pay\", resource) \
                 when {{ context.input.cents < 100 }};"
            ),
        )
    })
}

/// Decides on all threads for a while; returns decisions a second, and how many were made with a
/// part of a set.
fn decide(engine: &PolicyEngine, time: Duration, reload: bool) -> (f64, u64, u64) {
    let stop = AtomicBool::new(false);
    let (decisions, torn) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut reloads = 0;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let (user, arguments) = (User::new("u"), json!({"cents": 1}));
                while !stop.load(Ordering::Relaxed) {
                    let decision = engine.current().decide(&Call {
                        tool: "pay",
                        arguments: &arguments,
                        user: &user,
                        agent: "a",
                        run: "r",
                        step: 0,
                        now: 0,
                        facts: Facts::default(),
                    });
                    let ids: Vec<&str> = decision
                        .determining
                        .iter()
                        .map(|policy| policy.id.as_str())
                        .collect();
                    let whole = decision.outcome == Outcome::Allow
                        && (ids == ["a-first", "a-second"] || ids == ["b-first", "b-second"]);
                    decisions.fetch_add(1, Ordering::Relaxed);
                    torn.fetch_add(u64::from(!whole), Ordering::Relaxed);
                }
            });
        }
        let mut next = Duration::ZERO;
        while start.elapsed() < time {
            if reload {
                let name = if reloads % 2 == 0 { "b" } else { "a" };
                // A set that does not load in between changes nothing.
                let broken = engine.reload(&[PolicySource::new("broken.cedar", "permit (")]);
                let whole = engine.reload(&policies(name));
                if broken.is_ok() || whole.is_err() {
                    torn.fetch_add(1, Ordering::Relaxed);
                }
                reloads += 1;
            }
            next += Duration::from_millis(10);
            std::thread::sleep(next.saturating_sub(start.elapsed()));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let decisions = decisions.load(Ordering::Relaxed);
    #[expect(clippy::cast_precision_loss, reason = "for printing")]
    let rate = decisions as f64 / start.elapsed().as_secs_f64();
    (rate, torn.load(Ordering::Relaxed), reloads)
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let pay = ToolDeclaration::new(
        "pay",
        json!({"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]}),
    );
    let engine = PolicyEngine::load(vec![pay], &policies("a"))?;
    let time = Duration::from_secs(seconds);
    let (undisturbed, torn_before, _) = decide(&engine, time, false);
    let (disturbed, torn, reloads) = decide(&engine, time, true);
    println!("{THREADS} threads, undisturbed: {undisturbed:.0} decisions a second");
    println!(
        "{THREADS} threads, {reloads} reloads in {seconds} s (as many that fail): {disturbed:.0} \
         decisions a second, {:.1} % of undisturbed",
        disturbed / undisturbed * 100.0
    );
    println!("decisions with half a set: {}", torn_before + torn);
    if torn_before + torn > 0 {
        return Err("a decision was made with half a set".into());
    }
    Ok(())
}
