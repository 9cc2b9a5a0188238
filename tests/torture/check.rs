//! What must hold afterwards, by SQL and from files alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::{Command, Stdio},
};

use sea_orm::{ConnectionTrait as _, QueryResult, Statement};
use serde_json::Value;

use crate::database::TestDatabase;

const FINAL: [&str; 8] = [
    "denied",
    "blocked",
    "declined",
    "expired",
    "superseded",
    "cancelled",
    "succeeded",
    "failed",
];

struct Call {
    run: String,
    tool: String,
    state: String,
    arguments: Option<String>,
}

fn rows(database: &TestDatabase, sql: &'static str) -> Vec<QueryResult> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connection = database.connect().await;
        let sql = Statement::from_string(connection.get_database_backend(), sql);
        connection.query_all_raw(sql).await.unwrap()
    })
}

fn lines(folder: &Path, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub fn check(database: &TestDatabase, folder: &Path) -> String {
    let calls: BTreeMap<String, Call> = rows(
        database,
        "SELECT id, run_id, tool, state, arguments FROM agentkit_calls",
    )
    .iter()
    .map(|row| {
        let text = |name: &str| row.try_get::<String>("", name).unwrap();
        let call = Call {
            run: text("run_id"),
            tool: text("tool"),
            state: text("state"),
            arguments: row.try_get("", "arguments").unwrap(),
        };
        (text("id"), call)
    })
    .collect();
    let effects = lines(folder, "effects");
    let mut effects_of = BTreeMap::<&str, Vec<(&str, &str)>>::new();
    for effect in &effects {
        let mut parts = effect.splitn(3, ' ');
        let (call, tool) = (parts.next().unwrap(), parts.next().unwrap());
        effects_of
            .entry(call)
            .or_default()
            .push((tool, parts.next().unwrap()));
    }
    let journal = journal(folder);
    for (call, effects) in &effects_of {
        let stored = &calls[*call];
        // 1. No call has two effects, save those of tools declared idempotent.
        assert!(
            stored.tool == "note" || effects.len() == 1,
            "{call}: {effects:?}"
        );
        // 3. Every effect's arguments are those of its fingerprint (which the script recomputes).
        for (tool, arguments) in effects {
            assert_eq!(*tool, stored.tool, "{call}");
            assert_eq!(Some(*arguments), stored.arguments.as_deref(), "{call}");
        }
        // 2. No effect without a consumed approval or an unattended permit.
        let events = &journal[*call];
        let released = events.iter().filter(|event| event["event"] == "released");
        let released: Vec<_> = released.collect();
        assert!(!released.is_empty(), "{call} was never released");
        if stored.tool == "pay" {
            assert_eq!(released.len(), 1, "{call} was released twice");
            let approvers = released[0]["approvers"].as_array().unwrap();
            assert_eq!(approvers.len(), 1, "{call}");
            let approved = events.iter().any(|event| {
                event["event"] == "decided"
                    && event["verdict"] == "approve"
                    && event["approver"] == approvers[0]
                    && event["fingerprint"] == released[0]["fingerprint"]
            });
            assert!(approved, "{call} ran without an approval: {events:?}");
        }
    }
    let lost = decisions(folder, &journal);
    for (id, call) in &calls {
        // 5. Every call is over, for one that is left alone decides about everything.
        assert!(
            FINAL.contains(&call.state.as_str()),
            "{id} is {}",
            call.state
        );
        // 6. Replaying the journal gives the state in the tables.
        let state = journal.get(id).and_then(|events| replay(events));
        assert_eq!(
            state.as_deref(),
            Some(call.state.as_str()),
            "{id} of {}",
            call.run
        );
        // What is said to have succeeded has an effect, unless a person said so.
        let settled = journal[id].iter().any(|event| event["verdict"] == "settle");
        if call.state == "succeeded" && !settled {
            assert!(effects_of.contains_key(id.as_str()), "{id} has no effect");
        }
    }
    check_runs(database);
    // 6. The journal verifies.
    let said = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/verify_export.py"))
        .stdin(Stdio::from(
            std::fs::File::open(folder.join("export")).unwrap(),
        ))
        .output()
        .expect("this test takes python3");
    let verified = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    assert!(said.status.success(), "{verified}");
    let runs: BTreeSet<_> = calls.values().map(|call| &call.run).collect();
    let twice = effects_of
        .values()
        .filter(|effects| effects.len() > 1)
        .count();
    format!(
        "{} runs, {} calls, {} effects ({twice} repeated by idempotent tools), {lost} decisions \
         that lost; {verified}",
        runs.len(),
        calls.len(),
        effects.len()
    )
}

/// 5. No run is stuck, and no lease is held by the dead.
fn check_runs(database: &TestDatabase) {
    let stuck = rows(
        database,
        "SELECT id, status, lease_owner FROM agentkit_runs
         WHERE status <> 'finished' OR lease_owner IS NOT NULL",
    );
    let stuck: Vec<_> = stuck
        .iter()
        .map(|row| {
            let text = |name| row.try_get::<Option<String>>("", name).unwrap();
            (text("id"), text("status"), text("lease_owner"))
        })
        .collect();
    assert!(stuck.is_empty(), "stuck: {stuck:?}");
}

/// The events of each call, in order.
fn journal(folder: &Path) -> BTreeMap<String, Vec<Value>> {
    let mut events = BTreeMap::<_, Vec<_>>::new();
    for line in lines(folder, "export") {
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["data"]["record"] != "entry" {
            continue;
        }
        let event: Value = serde_json::from_str(line["data"]["body"].as_str().unwrap()).unwrap();
        if let Some(call) = event["call"].as_str() {
            events
                .entry(call.to_owned())
                .or_default()
                .push(event.clone());
        }
    }
    events
}

fn replay(events: &[Value]) -> Option<String> {
    events.iter().fold(None, |state, event| {
        let next = match event["event"].as_str().unwrap() {
            "gate_decided" => event["outcome"].as_str(),
            "decided" | "release_refused" | "call_ended" => event["state"].as_str(),
            "released" => Some("executing"),
            "expired" => Some("expired"),
            _ => None,
        };
        next.map(str::to_owned).or(state)
    })
}

/// 4. Exactly one decision won each time a call was asked about, and every loser was told which.
fn decisions(folder: &Path, journal: &BTreeMap<String, Vec<Value>>) -> usize {
    let mut won = BTreeMap::<(String, String), usize>::new();
    let mut lost = 0;
    for line in lines(folder, "decisions") {
        let parts: Vec<_> = line.splitn(5, ' ').collect();
        let [call, fingerprint, by, verdict, said] = parts[..] else {
            panic!("{line}");
        };
        let recorded = journal
            .get(call)
            .into_iter()
            .flatten()
            .find(|event| event["event"] == "decided" && event["fingerprint"] == fingerprint);
        match said.split(' ').next().unwrap() {
            "won" => {
                *won.entry((call.to_owned(), fingerprint.to_owned()))
                    .or_default() += 1;
                let recorded = recorded.unwrap_or_else(|| panic!("not recorded: {line}"));
                assert_eq!(
                    (recorded["approver"].as_str(), recorded["verdict"].as_str()),
                    (Some(by), Some(verdict)),
                    "{line}"
                );
            }
            "lost" => {
                lost += 1;
                let recorded = recorded.unwrap_or_else(|| panic!("lost against nothing: {line}"));
                let winner = format!(
                    "lost {} {}",
                    recorded["verdict"].as_str().unwrap(),
                    recorded["approver"].as_str().unwrap()
                );
                assert_eq!(said, winner, "{line}");
            }
            "repeated" | "late" => {}
            _ => panic!("a decision was answered by an error: {line}"),
        }
    }
    for (about, times) in &won {
        assert_eq!(*times, 1, "{about:?} was decided {times} times");
    }
    lost
}
