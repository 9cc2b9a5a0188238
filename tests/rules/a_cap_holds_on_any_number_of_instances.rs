//! Facts about the past are read in the transaction that admits a call: what waits holds its place,
//! and instances that admit at once do not exceed a cap together.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use agentkit::{
    model::scripted::{Reply, ScriptedModel},
    policy::{FactDeclaration, FactKind, FactScope, FactWindow, PolicySource, ValuePath},
    prelude::*,
    store::Store,
};
use serde_json::json;

use crate::desk::*;

/// Where a process writes what its tools did.
#[derive(Clone)]
pub struct Spent(PathBuf);

/// Spend money.
#[tool]
pub async fn spend(cents: u64, #[ctx] spent: &Spent) -> u64 {
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&spent.0)
        .unwrap();
    file.write_all(format!("{cents}\n").as_bytes()).unwrap();
    cents
}

/// A purse.
#[agent(name = "purse", model = "test/scripted", instructions = "You are a purse.", tools = [spend])]
pub struct Purse;

const FIVE: &str = r#"
    @id("cap") permit (principal, action == Action::"spend", resource)
        when { context.session.spends < 5 };
"#;

const FIFTY: &str = r#"
    @id("cap") permit (principal, action == Action::"spend", resource)
        when { context.session.cents + context.input.cents <= 50 };
"#;

/// One at a time, and only with approval.
const ONE: &str = r#"
    @id("cap") permit (principal, action == Action::"spend with approval", resource)
        when { context.session.spends < 1 && context.approvals.count >= 1 };
    @id("approve") permit (principal, action == Action::"approve spend", resource);
"#;

fn spends(kind: FactKind, name: &str, window: Duration) -> FactDeclaration {
    let window = FactWindow::Last(window);
    FactDeclaration::new(name, kind, "spend", window, FactScope::Principal)
}

fn purse(store: Store, spent: &Spent, policy: &str, window: Duration) -> Hosted<Purse> {
    let cents = FactKind::SumAdmitted {
        path: ValuePath::Input("cents".to_owned()),
    };
    Purse::builder()
        .store(store)
        .model(model())
        .ctx(spent.clone())
        .fact(spends(FactKind::CountAdmitted, "spends", window))
        .fact(spends(cents, "cents", window))
        .policies(vec![PolicySource::new("cap.cedar", policy)])
        .lease(Duration::from_secs(10))
        .build()
        .unwrap()
}

/// Spends 20 as often as the input says, in one step.
fn model() -> ScriptedModel {
    ScriptedModel::new().answering(|request| {
        let results = request.last_results();
        if !results.is_empty() {
            return Reply::text(format!("{results:?}"));
        }
        let times = if format!("{request:?}").contains("thrice") {
            3
        } else {
            1
        };
        (0..times).fold(Reply::calls(), |reply, _| {
            reply.call("spend", &json!({"cents": 20}))
        })
    })
}

const HOUR: Duration = Duration::from_hours(1);

fn spent() -> Spent {
    let id = agentkit::call::CallId::new();
    Spent(std::env::temp_dir().join(format!("agentkit-spent-{id}")))
}

impl Spent {
    fn times(&self) -> usize {
        std::fs::read_to_string(&self.0).map_or(0, |text| text.lines().count())
    }
}

async fn run(purse: &Hosted<Purse>, text: &str) -> String {
    finished(purse.generate(Input::new(alice(), text)).await.unwrap())
}

#[test]
fn four_processes_admit_as_many_as_the_cap_says() {
    for round in 0..3 {
        let world = World::new();
        let spent = spent();
        let processes: Vec<_> = (0..4)
            .map(|_| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["a_cap_holds_on_any_number_of_instances::a_process"])
                    .args(["--exact", "--ignored", "--nocapture"])
                    .env("AGENTKIT_CAP_URL", world.url())
                    .env("AGENTKIT_CAP_FILE", &spent.0)
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for mut process in processes {
            assert!(process.wait().unwrap().success());
        }
        assert_eq!(spent.times(), 5, "round {round}");
        std::fs::remove_file(&spent.0).unwrap();
    }
}

/// Not a test: one of the processes.
#[test]
#[ignore = "a process of another test"]
fn a_process() {
    let Ok(url) = std::env::var("AGENTKIT_CAP_URL") else {
        return;
    };
    let spent = Spent(std::env::var("AGENTKIT_CAP_FILE").unwrap().into());
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let purse = purse(Store::open(&url).await.unwrap(), &spent, FIVE, HOUR);
            let runs: Vec<_> = (0..4)
                .map(|_| {
                    let purse = purse.clone();
                    tokio::spawn(async move { run(&purse, "go").await })
                })
                .collect();
            for run in runs {
                run.await.unwrap();
            }
        });
}

#[tokio::test]
async fn calls_of_one_step_count_for_each_other() {
    let world = World::new();
    let spent = spent();
    let purse = purse(world.store().await, &spent, FIFTY, HOUR);
    let said = run(&purse, "thrice").await;
    assert_eq!(spent.times(), 2, "{said}");
    assert!(said.contains("denied"), "{said}");
    std::fs::remove_file(&spent.0).unwrap();
}

#[tokio::test]
async fn a_call_that_waits_holds_its_place_and_does_not_count_for_itself() {
    let world = World::new();
    let spent = spent();
    let purse = purse(world.store().await, &spent, ONE, HOUR);
    let first = suspended(purse.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let said = run(&purse, "go").await;
    assert!(said.contains("denied"), "{said}");
    // Declined, it gives its place back.
    let call = the_one(&purse, &first).await;
    purse.decide(&fiona(), decline(&call, "no")).await.unwrap();
    let second = suspended(purse.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&purse, &second).await;
    purse.decide(&fiona(), approve(&call)).await.unwrap();
    finished(purse.resume_and_wait(&second).await.unwrap());
    assert_eq!(spent.times(), 1);
    std::fs::remove_file(&spent.0).unwrap();
}

#[tokio::test]
async fn other_people_have_caps_of_their_own_and_windows_end() {
    let world = World::new();
    let spent = spent();
    let purse = purse(world.store().await, &spent, FIFTY, Duration::from_secs(2));
    run(&purse, "thrice").await;
    assert_eq!(spent.times(), 2);
    let other = Input::new(frank(), "thrice");
    finished(purse.generate(other).await.unwrap());
    assert_eq!(spent.times(), 4);
    tokio::time::sleep(Duration::from_millis(2100)).await;
    run(&purse, "thrice").await;
    assert_eq!(spent.times(), 6);
    std::fs::remove_file(&spent.0).unwrap();
}

#[tokio::test]
async fn what_was_erased_cannot_be_added_up_and_denies() {
    let world = World::new();
    let spent = spent();
    let store = world.store().await;
    let purse = purse(store.clone(), &spent, FIFTY, HOUR);
    let mut started = purse.stream(Input::new(alice(), "go")).await.unwrap();
    let first = started.run().clone();
    while started.next().await.is_some() {}
    store.erase(&first, "asked for").await.unwrap();
    let said = run(&purse, "go").await;
    assert!(said.contains("erased"), "{said}");
    assert_eq!(spent.times(), 1);
    std::fs::remove_file(&spent.0).unwrap();
}
