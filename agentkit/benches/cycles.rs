//! How fast runs go through the store, beside a bare loop of four commits on the same disk.
//!
//! A cycle starts a run, suspends it durably, approves, executes and finishes it, with a model
//! that answers at once. The bare loop writes the same kinds of rows in four transactions, with
//! nothing checked, journaled or leased. Nothing is asserted about time: the table is the result.
//!
//! `cargo bench -p agentkit --bench cycles` measures SQLite; `-- --url postgres://…` another
//! database (built with its feature). `-- --rows 1000000` also lists among a million.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench may"
)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use agentkit::{
    approval::{PendingKind, Verdict},
    model::scripted::{Reply, ScriptedModel},
    prelude::*,
    store::{Page, RunFilter, Store},
};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement,
    TransactionTrait as _,
};

/// Pay somebody.
#[tool(require_approval)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the type is the tool's argument"
)]
fn pay(to: String, cents: u64) -> String {
    format!("paid {cents} to {to}")
}

/// The desk.
#[agent(name = "desk", model = "test/scripted", instructions = "You are a desk.", tools = [pay])]
struct Desk;

fn model() -> ScriptedModel {
    ScriptedModel::new().answering(|request| {
        if request.last_results().is_empty() {
            Reply::calls().call("pay", &serde_json::json!({"to": "bob", "cents": 5}))
        } else {
            Reply::text("done")
        }
    })
}

fn person(id: &str) -> Principal {
    Principal::new(id, "bench").role("finance")
}

fn host(store: Store) -> Hosted<Desk> {
    Desk::builder().store(store).model(model()).build().unwrap()
}

async fn to_pending(desk: &Hosted<Desk>) -> agentkit::call::RunId {
    match desk
        .generate(Input::new(person("alice"), "go"))
        .await
        .unwrap()
    {
        Outcome::Suspended(suspended) => suspended.run,
        _ => panic!("the run did not wait"),
    }
}

async fn cycle(desk: &Hosted<Desk>) {
    let run = to_pending(desk).await;
    let pending = desk.runtime().store().pending(&run).await.unwrap();
    let call = pending.first().unwrap();
    assert_eq!(call.kind, PendingKind::Approval);
    let decision = Decision {
        run: run.clone(),
        call: call.call.clone(),
        fingerprint: call.fingerprint,
        verdict: Verdict::Approve,
    };
    desk.decide(&person("fiona"), decision).await.unwrap();
    match desk.resume_and_wait(&run).await.unwrap() {
        Outcome::Finished { text, .. } => assert_eq!(text, "done"),
        _ => panic!("the run did not finish"),
    }
}

/// The tables of the bare loop: the columns that its rows need, and no index but the key.
async fn bare_tables(database: &DatabaseConnection) {
    let (text, blob) = match database.get_database_backend() {
        DbBackend::MySql => ("longtext", "varbinary(32)"),
        DbBackend::Postgres => ("text", "bytea"),
        _ => ("text", "blob"),
    };
    for sql in [
        format!(
            "CREATE TABLE bare_runs (id varchar(64) PRIMARY KEY, status varchar(16), requester {text}, secret {blob}, updated_at bigint)"
        ),
        format!(
            "CREATE TABLE bare_messages (run_id varchar(64), sequence int, body {text}, PRIMARY KEY (run_id, sequence))"
        ),
        format!(
            "CREATE TABLE bare_calls (id varchar(64) PRIMARY KEY, run_id varchar(64), state varchar(16), arguments {text}, fingerprint {blob}, outcome {text})"
        ),
        format!(
            "CREATE TABLE bare_decisions (call_id varchar(64) PRIMARY KEY, approver varchar(64), fingerprint {blob})"
        ),
    ] {
        database.execute_unprepared(&sql).await.unwrap();
    }
}

async fn bare_cycle(database: &DatabaseConnection) {
    let backend = database.get_database_backend();
    let id = agentkit::call::RunId::new().to_string();
    let run = |sql: &str, values: Vec<sea_orm::Value>| {
        let mut sql = sql.to_owned();
        if backend == DbBackend::Postgres {
            for number in 1..=values.len() {
                sql = sql.replacen('?', &format!("${number}"), 1);
            }
        }
        Statement::from_sql_and_values(backend, sql, values)
    };
    let digest = vec![7_u8; 32];
    let commits = [
        vec![
            run(
                "INSERT INTO bare_runs (id, status, requester, secret, updated_at) VALUES (?, ?, ?, ?, ?)",
                vec![
                    id.clone().into(),
                    "running".into(),
                    "{\"id\":\"alice\"}".into(),
                    digest.clone().into(),
                    1_i64.into(),
                ],
            ),
            run(
                "INSERT INTO bare_messages (run_id, sequence, body) VALUES (?, ?, ?)",
                vec![
                    id.clone().into(),
                    0_i32.into(),
                    "{\"role\":\"user\",\"text\":\"go\"}".into(),
                ],
            ),
        ],
        vec![
            run(
                "INSERT INTO bare_calls (id, run_id, state, arguments, fingerprint) VALUES (?, ?, ?, ?, ?)",
                vec![
                    id.clone().into(),
                    id.clone().into(),
                    "awaiting_approval".into(),
                    "{\"cents\":5,\"to\":\"bob\"}".into(),
                    digest.clone().into(),
                ],
            ),
            run(
                "UPDATE bare_runs SET status = ? WHERE id = ?",
                vec!["suspended".into(), id.clone().into()],
            ),
        ],
        vec![
            run(
                "INSERT INTO bare_decisions (call_id, approver, fingerprint) VALUES (?, ?, ?)",
                vec![id.clone().into(), "fiona".into(), digest.into()],
            ),
            run(
                "UPDATE bare_calls SET state = ? WHERE id = ? AND state = 'awaiting_approval'",
                vec!["executing".into(), id.clone().into()],
            ),
        ],
        vec![
            run(
                "UPDATE bare_calls SET state = ?, outcome = ? WHERE id = ?",
                vec!["succeeded".into(), "paid".into(), id.clone().into()],
            ),
            run(
                "UPDATE bare_runs SET status = ? WHERE id = ?",
                vec!["finished".into(), id.into()],
            ),
        ],
    ];
    for commit in commits {
        let tx = database.begin().await.unwrap();
        for statement in commit {
            tx.execute_raw(statement).await.unwrap();
        }
        tx.commit().await.unwrap();
    }
}

/// Runs `work` until `many` are done, `at_once` at a time; how many a second, and the processor
/// time of each.
async fn rate<F>(many: usize, at_once: usize, work: impl Fn() -> F) -> (f64, Duration)
where
    F: Future<Output = ()> + Send + 'static,
{
    let left = Arc::new(AtomicUsize::new(many));
    let (start, before) = (Instant::now(), processor_time());
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        while tasks.len() < at_once
            && left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
        {
            tasks.spawn(work());
        }
        match tasks.join_next().await {
            Some(done) => done.unwrap(),
            None => break,
        }
    }
    let took = start.elapsed().as_secs_f64();
    let each = processor_time().saturating_sub(before) / u32::try_from(many).unwrap();
    (many as f64 / took, each)
}

/// User and system time of this process. Linux counts it in ticks of 10 ms.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().skip(11).take(2))
        .map_or(0, |fields| {
            fields.filter_map(|field| field.parse::<u64>().ok()).sum()
        });
    Duration::from_millis(ticks * 10)
}

fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::current_dir()
            .unwrap()
            .join(format!("bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn url(&self, name: &str) -> String {
        format!("sqlite://{}?mode=rwc", self.0.join(name).display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn bare_connection(url: &str) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options.sqlx_logging(false).test_before_acquire(false);
    if url.starts_with("sqlite") {
        options.max_connections(1);
        options.map_sqlx_sqlite_opts(|options| {
            use sea_orm::sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
            options
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
        });
    } else {
        options.max_connections(16);
    }
    Database::connect(options).await.unwrap()
}

async fn cycles(ours: &str, bare: &str, seconds: f64) {
    let desk = host(Store::open(ours).await.unwrap());
    let database = bare_connection(bare).await;
    bare_tables(&database).await;
    for _ in 0..20 {
        cycle(&desk).await;
        bare_cycle(&database).await;
    }
    println!("| cycles a second | ours | bare loop | ratio | bar | processor time each |");
    println!("|---|---|---|---|---|---|");
    let (guess, _) = rate(50, 1, || {
        let database = database.clone();
        async move { bare_cycle(&database).await }
    })
    .await;
    for (at_once, bar) in [(1, 0.6), (16, 4.0), (64, 6.0)] {
        let many = ((guess * seconds) as usize).max(at_once * 4);
        let (loops, _) = rate(many, at_once, || {
            let database = database.clone();
            async move { bare_cycle(&database).await }
        })
        .await;
        let (ours, each) = rate(many, at_once, || {
            let desk = desk.clone();
            async move { cycle(&desk).await }
        })
        .await;
        println!(
            "| {at_once} at once | {ours:.0} | {loops:.0} | {:.2} | {bar} | {:.2} ms (bar 0.6) |",
            ours / loops,
            each.as_secs_f64() * 1000.0,
        );
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

async fn sizes(scratch: &Scratch) {
    println!("\n| messages in the run | bytes of a suspended run beyond its messages | bar |");
    println!("|---|---|---|");
    for messages in [10_usize, 100, 1000] {
        let name = format!("sizes-{messages}.db");
        let desk = host(Store::open(&scratch.url(&name)).await.unwrap());
        let database = Database::connect(scratch.url(&name)).await.unwrap();
        let used = async || {
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            database.execute_unprepared(sql).await.unwrap();
            size(&scratch.0.join(&name))
        };
        let many = 200_u64;
        let before = used().await;
        let mut stored = 0;
        for _ in 0..many {
            let run = to_pending(&desk).await;
            // The conversation before it: rows that are written once.
            let body = "{\"role\":\"user\",\"text\":\"go\"}";
            let values =
                (1..=messages - 2).map(|at| format!("('{run}', {}, 0, '{body}', 0)", at + 10));
            let sql = format!(
                "INSERT INTO agentkit_messages (run_id, sequence, step, body, created_at) VALUES {}",
                values.collect::<Vec<_>>().join(", ")
            );
            if messages > 2 {
                database.execute_unprepared(&sql).await.unwrap();
            }
            stored += 1;
        }
        let all = used().await - before;
        let sql = "SELECT SUM(pgsize) AS bytes FROM dbstat WHERE name IN ('agentkit_messages', 'sqlite_autoindex_agentkit_messages_1')";
        let sql = Statement::from_string(DbBackend::Sqlite, sql);
        let row = database.query_one_raw(sql).await.ok().flatten();
        let of_messages = row.and_then(|row| row.try_get::<i64>("", "bytes").ok());
        match of_messages.and_then(|bytes| u64::try_from(bytes).ok()) {
            Some(bytes) => println!(
                "| {messages} | {} | 2048 |",
                all.saturating_sub(bytes) / stored
            ),
            None => println!("| {messages} | {} with its messages | 2048 |", all / stored),
        }
    }
}

async fn listing(scratch: &Scratch, most: usize) {
    println!("\n| pending runs | list 20 | bar |");
    println!("|---|---|---|");
    let name = "listing.db";
    let desk = host(Store::open(&scratch.url(name)).await.unwrap());
    let template = to_pending(&desk).await;
    let database = Database::connect(scratch.url(name)).await.unwrap();
    let mut there = 1;
    for many in [10, 10_000, 1_000_000] {
        if many > most {
            println!("| {many} | not asked for (`-- --rows {many}`) | 2 ms |");
            continue;
        }
        multiply(&database, template.as_str(), many - there).await;
        there = many;
        let filter = RunFilter::suspended().agent("desk");
        let mut page = Page::default();
        let first = desk.runtime().store().runs(&filter, &page).await.unwrap();
        page.after = first.last().map(|found| found.run.id.clone());
        let mut took = Vec::new();
        for _ in 0..50 {
            let start = Instant::now();
            let found = desk.runtime().store().runs(&filter, &page).await.unwrap();
            took.push(start.elapsed());
            assert!(found.iter().all(|run| run.pending.len() == 1));
        }
        took.sort();
        println!(
            "| {many} | {:.2} ms | 2 ms |",
            took[took.len() / 2].as_secs_f64() * 1000.0
        );
    }
}

/// Copies a suspended run with its call.
async fn multiply(database: &DatabaseConnection, run: &str, copies: usize) {
    for (table, id) in [("agentkit_runs", "id"), ("agentkit_calls", "run_id")] {
        let sql = format!("SELECT name FROM pragma_table_info('{table}')");
        let rows = database
            .query_all_raw(Statement::from_string(DbBackend::Sqlite, sql))
            .await
            .unwrap();
        let columns: Vec<String> = rows
            .iter()
            .map(|row| row.try_get("", "name").unwrap())
            .collect();
        let values = columns.iter().map(|column| match column.as_str() {
            column if column == id || column == "id" || column == "root_id" => {
                format!("{column} || '-' || n")
            }
            column => column.to_owned(),
        });
        let sql = format!(
            "WITH RECURSIVE copies(n) AS (SELECT abs(random()) UNION ALL SELECT abs(random()) FROM copies LIMIT {copies})
             INSERT INTO {table} ({}) SELECT {} FROM {table}, (SELECT row_number() OVER () + (SELECT COUNT(*) FROM {table}) AS n FROM copies) WHERE {id} = '{run}'",
            columns.join(", "),
            values.collect::<Vec<_>>().join(", ")
        );
        database.execute_unprepared(&sql).await.unwrap();
    }
}

/// A process that opens a new database and stops at the first pending approval.
async fn first(url: &str) {
    let desk = host(Store::open(url).await.unwrap());
    to_pending(&desk).await;
    println!("{:.1}", peak_memory());
}

fn start(scratch: &Scratch) {
    let program = std::env::current_exe().unwrap();
    let mut took = Vec::new();
    let mut memory = 0.0_f64;
    for number in 0..10 {
        let url = scratch.url(&format!("start-{number}.db"));
        let start = Instant::now();
        let child = Command::new(&program)
            .args(["--first", &url])
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        took.push(start.elapsed());
        let text = String::from_utf8_lossy(&child.stdout);
        memory = memory.max(text.trim().parse().unwrap_or_default());
    }
    took.sort();
    println!("\n| | ours | bar |");
    println!("|---|---|---|");
    println!(
        "| process start to first pending approval, new database | {:.0} ms | 50 ms |",
        took[took.len() / 2].as_secs_f64() * 1000.0
    );
    println!("| its peak memory | {memory:.1} MiB | 30 MiB |");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    if let Some(url) = after("--first") {
        runtime.block_on(first(&url));
        return;
    }
    let seconds = after("--seconds")
        .and_then(|text| text.parse().ok())
        .unwrap_or(2.0);
    let rows = after("--rows")
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000);
    if let Some(url) = after("--url") {
        runtime.block_on(cycles(&url, &url, seconds));
        return;
    }
    let scratch = Scratch::new();
    runtime.block_on(async {
        cycles(&scratch.url("ours.db"), &scratch.url("bare.db"), seconds).await;
        sizes(&scratch).await;
        listing(&scratch, rows).await;
    });
    start(&scratch);
}
