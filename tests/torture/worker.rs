//! A process that starts runs, decides and continues them until it is killed.

use std::{io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use agentkit::{
    approval::{PendingCall, PendingKind, Settlement, Verdict},
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
    run::DecideError,
    store::{Page, RunFilter, RunStatus, Store},
};
use serde_json::json;

use crate::Random;

/// What happened outside of the database: one line an effect, in one write.
pub struct Outside(PathBuf);

impl Outside {
    fn write(&self, file: &str, line: &str) {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.0.join(file))
            .unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

type Shared = Arc<Outside>;

/// Pay somebody.
#[tool(require_approval)]
pub async fn pay(
    to: String,
    cents: u64,
    #[ctx] outside: &Shared,
    #[ctx] run: &RunContext,
) -> String {
    let arguments = json!({"cents": cents, "to": to});
    outside.write(
        "effects",
        &format!("{} pay {arguments}", run.idempotency_key),
    );
    tokio::time::sleep(Duration::from_millis(cents % 20)).await;
    "paid".to_owned()
}

/// Note something, as often as it takes.
#[tool(idempotent)]
pub async fn note(text: String, #[ctx] outside: &Shared, #[ctx] run: &RunContext) -> String {
    let arguments = json!({"text": text});
    outside.write(
        "effects",
        &format!("{} note {arguments}", run.idempotency_key),
    );
    tokio::time::sleep(Duration::from_millis(3)).await;
    "noted".to_owned()
}

/// The desk.
#[agent(name = "desk", model = "test/scripted", instructions = "You are a desk.", tools = [pay, note])]
pub struct Desk;

fn model(number: u64) -> ScriptedModel {
    let random = std::sync::Mutex::new(Random::new(number));
    ScriptedModel::new().answering(move |request| {
        if !request.last_results().is_empty() {
            return Reply::text("done");
        }
        let mut random = random.lock().unwrap();
        let mut reply = Reply::calls();
        for _ in 0..=random.below(2) {
            reply = reply.call("pay", &json!({"to": "bob", "cents": random.below(1000)}));
        }
        if random.below(2) == 0 {
            reply = reply.call("note", &json!({"text": format!("n{}", random.below(1000))}));
        }
        reply
    })
}

fn person(id: &str) -> Principal {
    Principal::new(id, "torture").role("finance")
}

pub async fn work(url: String, folder: PathBuf, number: u64, drain: bool) {
    let outside: Shared = Arc::new(Outside(folder));
    let store = Store::open(&url).await.unwrap();
    let desk = Desk::builder()
        .store(store)
        .model(model(number))
        .ctx(Arc::clone(&outside))
        .lease(Duration::from_millis(600))
        .build()
        .unwrap();
    if drain {
        return finish(&desk, &outside).await;
    }
    let born = std::time::Instant::now();
    let tasks = (0..4).map(|task| {
        let (desk, outside) = (desk.clone(), Arc::clone(&outside));
        let mut random = Random::new(number.wrapping_mul(31).wrapping_add(task));
        tokio::spawn(async move {
            // Killed long before.
            while born.elapsed() < Duration::from_hours(2) {
                match random.below(10) {
                    0..3 => {
                        let input = Input::new(person("alice"), "go");
                        let _ = desk.generate(input).await;
                    }
                    3..7 => decide_some(&desk, &outside, &mut random).await,
                    _ => continue_some(&desk, &mut random).await,
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

async fn some_runs(desk: &Hosted<Desk>, status: RunStatus) -> Vec<agentkit::store::RunSummary> {
    let filter = RunFilter::default().agent("desk").status(status);
    let page = Page {
        after: None,
        size: 50,
    };
    let found = desk.runtime().store().runs(&filter, &page).await;
    found.unwrap_or_default()
}

async fn decide_some(desk: &Hosted<Desk>, outside: &Shared, random: &mut Random) {
    let runs = some_runs(desk, RunStatus::Suspended).await;
    let waiting: Vec<_> = runs.into_iter().flat_map(|run| run.pending).collect();
    if waiting.is_empty() {
        return;
    }
    let at = usize::try_from(random.below(waiting.len() as u64)).unwrap();
    let call = &waiting[at];
    let (first, second) = (verdict(call, random), verdict(call, random));
    // At once, by two people; sometimes the same one says it again.
    let others = ["fiona", "frank", "fiona"];
    let other = others[usize::try_from(random.below(3)).unwrap()];
    tokio::join!(
        decide(desk, outside, call, "fiona", first),
        decide(desk, outside, call, other, second),
    );
}

fn verdict(call: &PendingCall, random: &mut Random) -> Verdict {
    if call.kind == PendingKind::InDoubt {
        // Somebody looked: it is said to have happened. A retry could be a second effect.
        return Verdict::Settle(Settlement::Succeeded {
            result: "\"looked up\"".to_owned(),
        });
    }
    match random.below(4) {
        0 => Verdict::Decline { reason: None },
        1 => Verdict::Cancel,
        _ => Verdict::Approve,
    }
}

async fn decide(
    desk: &Hosted<Desk>,
    outside: &Shared,
    call: &PendingCall,
    by: &str,
    verdict: Verdict,
) {
    let kind = verdict.kind();
    let decision = Decision {
        run: call.run.clone(),
        call: call.call.clone(),
        fingerprint: call.fingerprint,
        verdict,
    };
    let said = match desk.decide(&person(by), decision).await {
        Ok(decided) if decided.repeated => format!("repeated {}", decided.decision.kind),
        Ok(_) => "won".to_owned(),
        Err(DecideError::AlreadyDecided { recorded, .. }) => {
            format!("lost {} {}", recorded.kind, recorded.approver)
        }
        // It was asked again, or ended, since it was listed.
        Err(
            DecideError::FingerprintMismatch { .. }
            | DecideError::NotPending { .. }
            | DecideError::WrongKind { .. },
        ) => "late".to_owned(),
        Err(error) => format!("error {error}: {}", source(&error)),
    };
    let line = format!("{} {} {by} {kind} {said}", call.call, call.fingerprint);
    outside.write("decisions", &line);
}

fn source(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(String::new, |source| {
        format!("{source} {}", self::source(source))
    })
}

async fn continue_some(desk: &Hosted<Desk>, random: &mut Random) {
    let status = match random.below(3) {
        0 => RunStatus::Running,
        1 => RunStatus::Interrupted,
        _ => RunStatus::Suspended,
    };
    let runs = some_runs(desk, status).await;
    if runs.is_empty() {
        return;
    }
    let at = usize::try_from(random.below(runs.len() as u64)).unwrap();
    let work = desk.resume_and_wait(&runs[at].run.id);
    let _ = tokio::time::timeout(Duration::from_secs(2), work).await;
}

/// Takes over what the dead left, decides about what waits, and continues until nothing moves.
async fn finish(desk: &Hosted<Desk>, outside: &Shared) {
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let mut left = 0;
        for status in [
            RunStatus::Running,
            RunStatus::Interrupted,
            RunStatus::Suspended,
        ] {
            for run in some_runs(desk, status).await {
                left += 1;
                for call in &run.pending {
                    let verdict = verdict(call, &mut random);
                    decide(desk, outside, call, "frank", verdict).await;
                }
                desk.resume_and_wait(&run.run.id).await.unwrap();
            }
        }
        if left == 0 {
            break;
        }
    }
    let export = std::fs::File::create(outside.0.join("export")).unwrap();
    let mut export = std::io::BufWriter::new(export);
    let store = desk.runtime().store();
    store.write_root().await.unwrap();
    store
        .export(|line| {
            serde_json::to_writer(&mut export, line).unwrap();
            export.write_all(b"\n").unwrap();
            Ok::<_, agentkit::store::StoreError>(())
        })
        .await
        .unwrap();
    export.flush().unwrap();
}
