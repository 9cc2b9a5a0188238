//! Canonical form and fingerprint against `serde_jcs` and plain `serde_json`, in one run.
//!
//! `cargo bench -p agentkit --bench canonical` prints criterion's figures and then one line of
//! ratios, measured side by side so that a noisy machine disturbs all of them alike.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::{hint::black_box, time::Instant};

use agentkit::call::{CallId, Canonical, Digest, FingerprintInput, Nonce, RunId};
use criterion::{Criterion, Throughput};
use serde_json::{Value, json};

fn order() -> Value {
    let items: Vec<_> = (0..40_u32)
        .map(|n| {
            json!({
                "sku": format!("sku-{n:05}"),
                "title": "Espresso machine, \"Barista\" edition — stainless steel",
                "quantity": n % 7 + 1,
                "price_cents": 12_345 + n * 17,
                "weight_kg": 1.25 + f64::from(n) / 8.0,
                "options": {"colour": "black", "gift": n % 2 == 0, "note": null},
            })
        })
        .collect();
    json!({"order_id": "ord-1042", "customer": {"id": "c-77", "name": "Zoë Müller"}, "items": items})
}

fn main() {
    let value = order();
    let bytes = Canonical::of(&value).unwrap().as_bytes().len();
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("canonical form");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("serde_json", |b| {
        b.iter(|| serde_json::to_string(black_box(&value)));
    });
    group.bench_function("serde_jcs", |b| {
        b.iter(|| serde_jcs::to_string(black_box(&value)));
    });
    group.bench_function("agentkit", |b| b.iter(|| Canonical::of(black_box(&value))));
    group.finish();

    let (run, call) = (RunId::new(), CallId::new());
    let digest = Digest::of(b"definition");
    let nonce = Nonce::from_bytes([7; 16]);
    let small = Canonical::of(&json!({"order_id": "ord-1042", "amount_cents": 4200})).unwrap();
    let input = FingerprintInput {
        tenant: None,
        agent: "refund-desk",
        definition: &digest,
        run: &run,
        call: &call,
        path: &[],
        tool: "issue_refund",
        input_schema: &digest,
        arguments: &small,
        requester: "alice",
        policy_slice: &digest,
        nonce: &nonce,
    };
    criterion.bench_function("fingerprint", |b| {
        b.iter(|| black_box(&input).fingerprint());
    });
    criterion.final_summary();
    print_ratios(&value, bytes);
}

/// Interleaves the three in short turns and compares the fastest turn of each.
fn print_ratios(value: &Value, bytes: usize) {
    let (mut plain, mut jcs, mut ours) = (f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..60 {
        plain = plain.min(turn(|| {
            serde_json::to_string(black_box(value)).unwrap().len()
        }));
        jcs = jcs.min(turn(|| {
            serde_jcs::to_string(black_box(value)).unwrap().len()
        }));
        ours = ours.min(turn(|| {
            Canonical::of(black_box(value)).unwrap().as_bytes().len()
        }));
    }
    #[allow(clippy::cast_precision_loss, reason = "a few thousand bytes")]
    let speed = |seconds: f64| bytes as f64 / seconds / 1e6;
    println!(
        "canonical form, MB/s: serde_json {:.0}, serde_jcs {:.0}, agentkit {:.0}; agentkit is \
         {:.1} times serde_jcs (bar: 4) and {:.2} times serde_json",
        speed(plain),
        speed(jcs),
        speed(ours),
        jcs / ours,
        plain / ours,
    );
}

fn turn(mut work: impl FnMut() -> usize) -> f64 {
    const ROUNDS: u32 = 200;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(work());
    }
    start.elapsed().as_secs_f64() / f64::from(ROUNDS)
}
