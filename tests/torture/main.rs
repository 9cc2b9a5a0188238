//! Torture: several processes work on the same runs, approvers decide, repeat and contradict at
//! once, and processes are killed at random. Then everything is checked from the outside: from the
//! tables by SQL, from an export of the journal by a script, and from a ledger of effects that
//! is no part of the database.
//!
//! A short form runs with the other tests. By hand, longer, on any back end:
//! `AGENTKIT_TORTURE_SECONDS=1800 AGENTKIT_TEST_URL=… cargo nextest run --test torture`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "tests may"
)]

#[path = "../rules/database.rs"]
mod database;

mod check;
mod worker;

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use database::TestDatabase;

const WORKERS: usize = 4;

/// Random numbers that need not be good (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn spawn(number: u64, url: &str, folder: &std::path::Path, drain: bool) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["a_worker", "--exact", "--ignored", "--nocapture"])
        .env("AGENTKIT_TORTURE_URL", url)
        .env("AGENTKIT_TORTURE_FOLDER", folder)
        .env("AGENTKIT_TORTURE_NUMBER", number.to_string())
        .env("AGENTKIT_TORTURE_DRAIN", if drain { "1" } else { "" })
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn nothing_happens_twice_and_nothing_is_lost() {
    let seconds =
        std::env::var("AGENTKIT_TORTURE_SECONDS").map_or(8, |text| text.parse().expect("seconds"));
    let database = TestDatabase::new();
    let folder = std::env::temp_dir().join(format!("agentkit-torture-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let seed = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_nanos() as u64;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut number = 0;
    let mut next = |drain| {
        number += 1;
        spawn(seed.wrapping_add(number), database.url(), &folder, drain)
    };
    let mut workers: Vec<_> = (0..WORKERS).map(|_| next(false)).collect();
    let (start, mut kills) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep(Duration::from_millis(100 + random.below(400)));
        let victim = usize::try_from(random.below(WORKERS as u64)).unwrap();
        // SIGKILL: nothing is told, nothing is cleaned up.
        workers[victim].kill().unwrap();
        let dead = workers[victim].wait_with_output_of();
        assert!(!dead.contains("panicked"), "a worker panicked: {dead}");
        kills += 1;
        workers[victim] = next(false);
    }
    for worker in &mut workers {
        worker.kill().unwrap();
        let dead = worker.wait_with_output_of();
        assert!(!dead.contains("panicked"), "a worker panicked: {dead}");
    }
    // One that is left alone finishes what can be finished.
    let mut last = next(true);
    let said = last.wait_with_output_of();
    assert!(last.wait().unwrap().success(), "the last worker: {said}");
    let summary = check::check(&database, &folder);
    println!("{WORKERS} workers, {seconds} s, {kills} killed: {summary}");
    std::fs::remove_dir_all(&folder).unwrap();
}

trait Said {
    fn wait_with_output_of(&mut self) -> String;
}

impl Said for Child {
    fn wait_with_output_of(&mut self) -> String {
        use std::io::Read as _;
        let mut said = String::new();
        if let Some(mut stderr) = self.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        self.wait().unwrap();
        said
    }
}

/// Not a test: the process that is killed.
#[test]
#[ignore = "a process of the torture"]
fn a_worker() {
    let Ok(url) = std::env::var("AGENTKIT_TORTURE_URL") else {
        return;
    };
    let folder = std::env::var("AGENTKIT_TORTURE_FOLDER").unwrap().into();
    let number = std::env::var("AGENTKIT_TORTURE_NUMBER").unwrap();
    let drain = !std::env::var("AGENTKIT_TORTURE_DRAIN").unwrap().is_empty();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(worker::work(url, folder, number.parse().unwrap(), drain));
}
