//! A reload is one step: decisions see one whole set, and a reload that fails changes nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

#[cfg(feature = "watch")]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentkit_policy::testing::PolicyTest;
use agentkit_policy::{
    Call, Facts, FileError, Outcome, PolicyEngine, PolicyFiles, PolicySource, ToolDeclaration, User,
};
use serde_json::json;

fn tool() -> ToolDeclaration {
    ToolDeclaration::new("pay", json!({"type": "object"}))
}

fn permit(id: &str) -> String {
    format!("@id(\"{id}\") permit (principal, action == Action::\"pay\", resource);\n")
}

fn both(name: &str) -> [PolicySource; 2] {
    ["1", "2"].map(|part| PolicySource::new(part, permit(&format!("{name}{part}"))))
}

#[test]
fn no_decision_is_made_with_half_a_set() {
    let engine = PolicyEngine::load(vec![tool()], &both("a")).unwrap();
    let stop = AtomicBool::new(false);
    let seen: Vec<[usize; 2]> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let (user, arguments) = (User::new("u"), json!({}));
                    let mut seen = [0, 0];
                    while !stop.load(Ordering::Relaxed) {
                        let set = engine.current();
                        let decision = set.decide(&Call {
                            tool: "pay",
                            arguments: &arguments,
                            user: &user,
                            agent: "a",
                            run: "r",
                            step: 0,
                            now: 0,
                            facts: Facts::default(),
                        });
                        let ids: Vec<&str> =
                            decision.determining.iter().map(|p| p.id.as_str()).collect();
                        match ids.as_slice() {
                            ["a1", "a2"] => seen[0] += 1,
                            ["b1", "b2"] => seen[1] += 1,
                            other => panic!("half a set: {other:?}"),
                        }
                    }
                    seen
                })
            })
            .collect();
        for round in 0..60 {
            engine
                .reload(&[PolicySource::new("broken", "permit (")])
                .expect_err("it must not load");
            engine
                .reload(&both(if round % 2 == 0 { "b" } else { "a" }))
                .unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let sum = |which: usize| seen.iter().map(|seen| seen[which]).sum::<usize>();
    assert!(
        sum(0) > 0 && sum(1) > 0,
        "both sets were in force: {seen:?}"
    );
}

/// A directory that goes when the test ends.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("agentkit-policy-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, file: &str, text: &str) {
        // As editors do it: a new file takes the place of the old one.
        let new = self.0.join(format!("{file}.new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.0.join(file)).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn outcome(engine: &PolicyEngine) -> Outcome {
    let user = User::new("u");
    let test = PolicyTest::new(engine);
    test.call("pay", &json!({}), &user)
        .explanation()
        .decision
        .outcome
}

#[test]
fn files_are_read_as_a_whole_or_not_at_all() {
    let directory = Directory::new("read");
    directory.write("b.cedar", &permit("b"));
    directory.write("a.cedar", &permit("a"));
    directory.write("notes.txt", "permit (");
    let files = PolicyFiles::new([directory.0.clone()]);
    let sources = files.read(1_000).unwrap();
    let ends: Vec<bool> = sources
        .iter()
        .zip(["a.cedar", "b.cedar"])
        .map(|(source, name)| source.name.ends_with(name))
        .collect();
    assert_eq!(ends, [true, true]);
    assert!(matches!(files.read(100), Err(FileError::TooMuch { .. })));
    let engine = PolicyEngine::load(vec![tool()], &[]).unwrap();
    engine.reload_files(&files).unwrap();
    assert_eq!(outcome(&engine), Outcome::Allow);

    directory.write("c.cedar", "permit (");
    let error = engine.reload_files(&files).expect_err("it must not load");
    assert!(error.to_string().contains("c.cedar:1"), "{error}");
    let gone = PolicyFiles::new([directory.0.join("gone.cedar")]);
    let error = engine.reload_files(&gone).expect_err("it is not there");
    assert!(error.to_string().contains("gone.cedar"), "{error}");
    std::fs::write(directory.0.join("c.cedar"), [0xff, 0xfe]).unwrap();
    engine.reload_files(&files).expect_err("it is not UTF-8");
    assert_eq!(outcome(&engine), Outcome::Allow, "the old set stays");
}

#[cfg(feature = "watch")]
#[test]
fn a_changed_file_is_in_force_soon_and_a_broken_one_is_reported() {
    let directory = Directory::new("watch");
    directory.write("p.cedar", &permit("p"));
    let files = PolicyFiles::new([directory.0.join("p.cedar")]);
    let sources = files.read(1_000).unwrap();
    let engine = Arc::new(PolicyEngine::load(vec![tool()], &sources).unwrap());
    let (told, reports) = std::sync::mpsc::channel();
    let watch = agentkit_policy::watch(Arc::clone(&engine), files, move |report| {
        let _ = told.send(report.map_err(|error| error.to_string()));
    })
    .unwrap();
    let next = || {
        reports
            .recv_timeout(Duration::from_secs(30))
            .expect("a report")
    };
    assert_eq!(outcome(&engine), Outcome::Allow);

    directory.write("p.cedar", "permit (");
    assert!(next().unwrap_err().contains("p.cedar:1"));
    assert_eq!(outcome(&engine), Outcome::Allow, "the old set stays");

    directory.write("p.cedar", &permit("p").replace("permit", "forbid"));
    // A change can be reported twice, never not at all.
    while next().is_err() {}
    assert_eq!(outcome(&engine), Outcome::Deny);

    std::fs::remove_file(directory.0.join("p.cedar")).unwrap();
    while next().is_ok() {}
    assert_eq!(outcome(&engine), Outcome::Deny, "the old set stays");
    drop(watch);
    assert!(Arc::strong_count(&engine) == 1, "the thread has ended");
}
