use agentkit::{
    memory::Thread,
    model::scripted::{Reply, ScriptedModel},
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
