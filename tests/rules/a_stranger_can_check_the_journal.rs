//! An export holds all that is needed to check it without us, and every change of it is found: by
//! the library, and by a script that shares no code with it.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    time::Duration,
};

use agentkit::{
    call::RunId,
    journal::{Verified, Verifier},
    model::scripted::Reply,
    store::{Store, StoreError},
};
use serde_json::json;

use crate::desk::*;

async fn export(store: &Store) -> Vec<String> {
    let mut lines = Vec::new();
    store
        .export(|line| {
            lines.push(serde_json::to_string(line).unwrap());
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    lines
}

fn check(lines: &[String]) -> Result<Verified, String> {
    let mut verifier = Verifier::new();
    for line in lines {
        verifier.line(line).map_err(|error| error.to_string())?;
    }
    verifier.finish().map_err(|error| error.to_string())
}

/// What the script says, and whether it was content.
fn script(lines: &[String]) -> (bool, String) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/verify_export.py");
    let mut child = Command::new("python3")
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test takes python3");
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines.join("\n").as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.success(), said)
}

/// Three runs, one declined, one finished, one still waiting, and two roots.
async fn story(world: &World) -> (Hosted<Desk>, [RunId; 3]) {
    let desk = world
        .host(calls(Reply::calls().call(
            "pay",
            &json!({"to": "b\u{f6}b\u{1f4b6}", "cents": 9_007_199_254_740_993_u64}),
        )))
        .await;
    let (paid, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&paid).await.unwrap());
    let store = desk.runtime().store();
    assert_eq!(store.write_root().await.unwrap().unwrap().heads.len(), 1);
    assert!(
        store.write_root().await.unwrap().is_none(),
        "nothing changed"
    );
    let desk = world.host(pays("eve", 5)).await;
    let (declined, call) = stopped(&desk).await;
    desk.decide(&fiona(), decline(&call, "no")).await.unwrap();
    finished(desk.resume_and_wait(&declined).await.unwrap());
    let desk = world.host(pays("bob", 7)).await;
    let (waits, _) = stopped(&desk).await;
    let root = desk.runtime().store().write_root().await.unwrap().unwrap();
    assert_eq!((root.sequence, root.heads.len()), (2, 2));
    (desk, [paid, declined, waits])
}

use agentkit::prelude::Hosted;

#[tokio::test]
async fn with_the_export_alone() {
    let world = World::new();
    let (desk, _) = story(&world).await;
    let store = desk.runtime().store();
    let lines = export(store).await;
    let verified = check(&lines).unwrap();
    assert_eq!(
        (verified.runs, verified.fingerprints, verified.roots),
        (3, 3, 2)
    );
    assert_eq!(store.verify_all().await.unwrap().unwrap(), verified);
    let (content, said) = script(&lines);
    assert!(content, "{said}");
    let count: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(count["events"], json!(verified.events));
    assert_eq!(count["fingerprints"], json!(3));
    assert_eq!(count["roots"], json!(2));
    for line in &lines {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["specversion"], json!("1.0"));
        for attribute in ["id", "source", "type", "time", "subject"] {
            assert!(line[attribute].is_string(), "{attribute}");
        }
    }
}

#[tokio::test]
async fn any_change_of_an_export_is_found_by_both() {
    let world = World::new();
    let (desk, _) = story(&world).await;
    let lines = export(desk.runtime().store()).await;
    // Every line is missing once, and every digit of some kind is another once.
    for at in 0..lines.len() {
        let mut changed = lines.clone();
        let gone = changed.remove(at);
        // The last root leaves a shorter export that is whole in itself; a call is held by the
        // events that name it, not by the chain.
        if gone.contains("agentkit.root") && at == lines.len() - 1 || gone.contains("agentkit.call")
        {
            continue;
        }
        assert!(check(&changed).is_err(), "without {gone}");
        assert!(!script(&changed).0, "without {gone}");
    }
    for (from, to) in [
        (
            "\\\"approver\\\":\\\"fiona\\\"",
            "\\\"approver\\\":\\\"frank\\\"",
        ),
        ("\\\"cents\\\":7", "\\\"cents\\\":8"),
        ("\"tenant\":null", "\"tenant\":\"\""),
        ("\"requester\":\"alice\"", "\"requester\":\"alyce\""),
    ] {
        let changed: Vec<_> = lines.iter().map(|line| line.replace(from, to)).collect();
        assert_ne!(changed, lines, "{from}");
        assert!(check(&changed).is_err(), "{from}");
        assert!(!script(&changed).0, "{from}");
    }
}

#[tokio::test]
async fn a_run_that_vanished_is_missed() {
    let world = World::new();
    let (desk, [paid, ..]) = story(&world).await;
    for table in [
        "runs WHERE id",
        "calls WHERE run_id",
        "journal WHERE run_id",
    ] {
        world
            .tamper(&format!("DELETE FROM agentkit_{table} = '{paid}'"))
            .await;
    }
    let broken = desk.runtime().store().verify_all().await.unwrap();
    let why = broken.unwrap_err().to_string();
    assert!(why.contains(paid.as_str()), "{why}");
}

#[tokio::test]
async fn a_run_that_was_cut_short_with_its_head_is_found() {
    let world = World::new();
    let (desk, [paid, ..]) = story(&world).await;
    let store = desk.runtime().store();
    let entries = store.journal(&paid).await.unwrap();
    let last = i64::try_from(entries.len()).unwrap();
    world
        .tamper(&format!(
            "DELETE FROM agentkit_journal WHERE run_id = '{paid}' AND sequence = {last}"
        ))
        .await;
    world
        .tamper(&format!(
            "UPDATE agentkit_runs SET journal_sequence = {}, journal_head =
             (SELECT digest FROM agentkit_journal WHERE run_id = '{paid}' AND sequence = {})
             WHERE id = '{paid}'",
            last - 1,
            last - 1
        ))
        .await;
    // The chain alone is whole: the root remembers.
    store.verify_journal(&paid).await.unwrap().unwrap();
    let why = store.verify_all().await.unwrap().unwrap_err().to_string();
    assert!(why.contains(&format!("had event {last}")), "{why}");
}

#[tokio::test]
async fn erased_content_leaves_the_chain_whole() {
    let world = World::new();
    let (desk, [paid, declined, waits]) = story(&world).await;
    let store = desk.runtime().store();
    assert!(matches!(
        store.erase(&waits, "asked to").await,
        Err(StoreError::NotOver { .. })
    ));
    store.erase(&paid, "asked to").await.unwrap();
    let lines = export(store).await;
    let verified = check(&lines).unwrap();
    assert_eq!((verified.fingerprints, verified.erased), (2, 1));
    assert!(script(&lines).0);
    assert!(!lines.iter().any(|line| line.contains("9007199254740993")));
    assert!(store.messages(&paid).await.unwrap().is_empty());
    // Retention takes the other one that is over, and not the one that waits.
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(store.erase_older(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(store.erase_older(Duration::ZERO).await.unwrap(), 0);
    assert!(store.calls(&declined).await.unwrap()[0].arguments.is_none());
    assert!(store.calls(&waits).await.unwrap()[0].arguments.is_some());
    assert!(script(&export(store).await).0);
}
