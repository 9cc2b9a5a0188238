//! The example as a user runs it: a process of its own, killed, started again, raced.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use crate::database::TestDatabase;
use crate::desk::World;

/// The example's program beside this test, or nothing where it was not built.
fn program() -> Option<PathBuf> {
    let here = std::env::current_exe().unwrap();
    let program = here
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/refund_desk");
    if program.exists() {
        return Some(program);
    }
    let hint = "skipped: build it first, `cargo build --example refund_desk`";
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{hint}");
    println!("{hint}");
    None
}

fn desk(program: &Path, world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .arg("--db")
        .arg(world.database.path())
        .args(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn says(mut command: Command, lines: &str) -> String {
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    text(child.wait_with_output().unwrap())
}

fn text(output: Output) -> String {
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// Starts the desk and reads up to the id on its card; the prompt follows.
fn at_the_prompt(mut command: Command) -> (Child, String) {
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let id = lines.find_map(|line| {
        line.unwrap()
            .strip_prefix("│ id          ")
            .map(str::to_owned)
    });
    (child, id.expect("a card with an id"))
}

async fn refunds(world: &World) -> i64 {
    use sea_orm::{ConnectionTrait as _, Database};
    let database = Database::connect(world.url()).await.unwrap();
    let count = "SELECT COUNT(*) AS n FROM refunds";
    let statement = sea_orm::Statement::from_string(sea_orm::DbBackend::Sqlite, count);
    database
        .query_one_raw(statement)
        .await
        .unwrap()
        .unwrap()
        .try_get("", "n")
        .unwrap()
}

#[tokio::test]
async fn killed_at_the_prompt_it_is_still_pending_and_refunds_once() {
    let Some(program) = program() else { return };
    let world = World::on(TestDatabase::file());
    let (mut child, id) = at_the_prompt(desk(&program, &world, &["Refund order ord-1042"]));
    child.kill().unwrap();
    child.wait().unwrap();
    let again = says(desk(&program, &world, &[]), "");
    assert!(
        again.contains(&id) && again.contains("Left pending"),
        "{again}"
    );
    let approved = says(desk(&program, &world, &[]), "a\n");
    assert!(
        approved.contains("Done: 249.00 of order ord-1042"),
        "{approved}"
    );
    assert_eq!(refunds(&world).await, 1);
    let twice = says(desk(&program, &world, &["--approve", &id]), "");
    assert!(
        twice.contains("decided before: approve by fiona"),
        "{twice}"
    );
    assert_eq!(refunds(&world).await, 1);
}

#[tokio::test]
async fn two_processes_approve_at_once_fifty_times_and_one_refund_is_made_each_time() {
    let Some(program) = program() else { return };
    for _ in 0..50 {
        let world = World::on(TestDatabase::file());
        let (mut child, id) = at_the_prompt(desk(&program, &world, &["Refund order ord-1042"]));
        child.kill().unwrap();
        child.wait().unwrap();
        let both = [0, 1].map(|_| desk(&program, &world, &["--approve", &id]).spawn().unwrap());
        for child in both {
            let said = text(child.wait_with_output().unwrap());
            assert!(
                said.contains("Recorded: approve") || said.contains("decided before"),
                "{said}"
            );
        }
        assert_eq!(refunds(&world).await, 1);
    }
}

#[tokio::test]
async fn arguments_changed_by_hand_are_refused() {
    let Some(program) = program() else { return };
    let world = World::on(TestDatabase::file());
    says(desk(&program, &world, &["Refund order ord-1042"]), "q\n");
    world.tamper("UPDATE agentkit_calls SET arguments = replace(arguments, '24900', '1') WHERE tool = 'issue_refund'").await;
    let refused = says(desk(&program, &world, &[]), "a\n");
    assert!(
        refused.contains("was changed after the approval was requested"),
        "{refused}"
    );
    assert_eq!(refunds(&world).await, 0);
}

#[tokio::test]
async fn other_inputs_work_too() {
    let Some(program) = program() else { return };
    for (input, lines, expected) in [
        ("Refund order ord-9", "", "there is no order `ord-9`"),
        (
            "Refund order ord-1099",
            "",
            "Such amounts are paid by the bank desk",
        ),
        ("lorem ipsum", "", "I can look up and refund orders"),
        ("", "", "I can look up and refund orders"),
        ("Show me ord-1043", "", "Zoë Müller bought"),
        (
            "Refund 20.00 of order ord-1042",
            "a\n",
            "Done: 20.00 of order ord-1042",
        ),
        (
            "Refund order ord-1042",
            "d not this time\n",
            "not this time",
        ),
        (
            "Refund order ord-1042",
            "m 10.00\na\n",
            "Done: 10.00 of order ord-1042",
        ),
        (
            "Refund order ord-1042",
            "what?\nm lots\na\n",
            "Done: 249.00 of order ord-1042",
        ),
        ("What's the weather?", "Oslo\n", "Oslo: 18 °C"),
        ("What's the weather in Bergen?", "", "Bergen: 18 °C"),
    ] {
        let world = World::on(TestDatabase::file());
        let said = says(desk(&program, &world, &[input]), lines);
        assert!(said.contains(expected), "{input}: {said}");
    }
    let world = World::on(TestDatabase::file());
    let said = says(
        desk(
            &program,
            &world,
            &["--requester", "fiona", "Refund order ord-1042"],
        ),
        "a\n",
    );
    assert!(said.contains("nobody-approves-their-own"), "{said}");
    let said = says(desk(&program, &world, &["--frobnicate"]), "");
    assert!(said.contains("there is no option `--frobnicate`"), "{said}");
}
