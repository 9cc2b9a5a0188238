use agentkit::{
    memory::Thread,
    model::{
        ChatModel, Message, ModelError, ModelName, ModelRequest, ModelStream,
        scripted::{Reply, ScriptedModel},
    },
    prelude::*,
};
use serde_json::json;

use crate::desk::*;

#[tokio::test]
async fn the_event_is_never_ahead_of_the_row_with_a_state_of_a_megabyte() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let text = "x".repeat(1 << 20);
    let mut running = desk.stream(Input::new(alice(), text)).await.unwrap();
    let run = running.run().clone();
    let mut decided = false;
    while let Some(event) = running.next().await {
        if let RunEvent::Pending(call) = event {
            // Another process, in the moment of the event.
            let other = desk.clone();
            other.decide(&fiona(), approve(&call)).await.unwrap();
            decided = true;
        }
    }
    assert!(decided);
    // The run was put down before the decision or has gone on with it: nothing is lost.
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

async fn rows(world: &World, table: &str) -> i64 {
    use sea_orm::{ConnectionTrait as _, Database, Statement};
    let database = Database::connect(world.url()).await.unwrap();
    let sql = format!("SELECT COUNT(*) AS n FROM {table}");
    let statement = Statement::from_string(database.get_database_backend(), sql);
    let row = database.query_one_raw(statement).await.unwrap().unwrap();
    row.try_get("", "n").unwrap()
}

#[tokio::test]
async fn twenty_rounds_on_one_thread_add_the_same_rows_each() {
    let world = World::new();
    let model = ScriptedModel::new().answering(|request| {
        if request.last_results().is_empty() {
            Reply::calls().call("pay", &json!({"to": "bob", "cents": 5}))
        } else {
            Reply::text("paid")
        }
    });
    let desk = world.host(model).await;
    let tables = [
        "messages",
        "calls",
        "decisions",
        "events",
        "journal",
        "runs",
        "threads",
    ];
    let mut before = Vec::new();
    let mut growth = Vec::new();
    for round in 0..20 {
        let input = Input::new(alice(), format!("round {round}")).thread(Thread::new("t"));
        let run = suspended(desk.generate(input).await.unwrap()).run;
        let call = the_one(&desk, &run).await;
        desk.decide(&fiona(), approve(&call)).await.unwrap();
        finished(desk.resume_and_wait(&run).await.unwrap());
        let mut counts = Vec::new();
        for table in tables {
            counts.push(rows(&world, &format!("agentkit_{table}")).await);
        }
        if round > 0 {
            let more: Vec<_> = counts
                .iter()
                .zip(&before)
                .map(|(now, then)| now - then)
                .collect();
            growth.push(more);
        }
        before = counts;
    }
    assert!(
        growth.windows(2).all(|pair| pair[0] == pair[1]),
        "{growth:?}"
    );
    assert_eq!(world.ledger.effects().len(), 20);
}

/// Keeps nothing of what it is shown: fifty lookups, then payments, one a step.
struct Forgetful(ModelName);

const LOOKUPS: usize = 50;
const ROUNDS: usize = 20;

#[async_trait::async_trait]
impl ChatModel for Forgetful {
    fn name(&self) -> &ModelName {
        &self.0
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let said = |message: &&Message| matches!(message, Message::Assistant(_));
        let step = request.messages.iter().filter(said).count();
        let reply = if step < LOOKUPS {
            Reply::calls().call("lookup", &json!({ "step": step }))
        } else if step < LOOKUPS + ROUNDS {
            Reply::calls().call("pay", &json!({"to": "bob", "cents": step}))
        } else {
            Reply::text("done")
        };
        ScriptedModel::new().reply(reply).stream(request).await
    }
}

/// Look something up: 400 KB of it.
#[tool(read_only)]
pub async fn lookup(step: u32) -> String {
    format!("{step:06}").repeat(400_000 / 6)
}

/// A desk that looks things up.
#[agent(name = "archive", model = "test/scripted", instructions = "You look up.", tools = [lookup, pay])]
pub struct Archive;

/// How many characters and bytes stand in all rows.
async fn stored_size(world: &World) -> i64 {
    use sea_orm::{ConnectionTrait as _, Database, Statement};
    let database = Database::connect(world.url()).await.unwrap();
    let columns: [(&str, &[&str]); 5] = [
        ("messages", &["body"]),
        (
            "calls",
            &["arguments", "payload", "answer", "outcome", "gate"],
        ),
        ("decisions", &["approver", "reason", "content"]),
        ("events", &["body"]),
        ("journal", &["body"]),
    ];
    let mut size = 0;
    for (table, columns) in columns {
        for column in columns {
            let sql = format!(
                "SELECT CAST(COALESCE(SUM(LENGTH({column})), 0) AS DECIMAL(20)) AS n \
                 FROM agentkit_{table}"
            );
            let sql = match database.get_database_backend() {
                sea_orm::DbBackend::MySql => sql.replace("DECIMAL(20)", "SIGNED"),
                _ => sql.replace("DECIMAL(20)", "BIGINT"),
            };
            let statement = Statement::from_string(database.get_database_backend(), sql);
            let row = database.query_one_raw(statement).await.unwrap().unwrap();
            size += row.try_get::<i64>("", "n").unwrap();
        }
    }
    size
}

#[tokio::test]
async fn twenty_megabytes_of_conversation_make_no_pause_larger() {
    let world = World::new();
    let archive = Archive::builder()
        .store(world.store().await)
        .model(Forgetful("test/forgetful".parse().unwrap()))
        .ctx(world.ledger.clone())
        .build()
        .unwrap();
    let input = Input::new(alice(), "go").max_steps(100);
    let run = suspended(archive.generate(input).await.unwrap()).run;
    let mut sizes = vec![stored_size(&world).await];
    assert!(sizes[0] > 20_000_000, "{sizes:?}");
    for round in 1..=ROUNDS {
        let call = the_one(&archive, &run).await;
        archive.decide(&fiona(), approve(&call)).await.unwrap();
        let outcome = archive.resume_and_wait(&run).await.unwrap();
        if round == ROUNDS {
            assert_eq!(finished(outcome), "done");
        } else {
            suspended(outcome);
        }
        sizes.push(stored_size(&world).await);
    }
    let mut growth: Vec<_> = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The last one makes no call that waits.
    assert!(growth.pop().unwrap() < 16_384);
    let (least, most) = (growth.iter().min().unwrap(), growth.iter().max().unwrap());
    assert!(*most < 16_384, "{growth:?}");
    assert!(most - least <= 64, "{growth:?}");
}
