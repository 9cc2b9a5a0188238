//! Opening a database: tables are made once, whoever comes first; what a newer version wrote is
//! not touched; the tables can live beside the application's own.

use agentkit::store::{Store, StoreError};
use sea_orm::{ConnectionTrait as _, Statement};

use crate::{database::TestDatabase, desk::*};

#[tokio::test(flavor = "multi_thread")]
async fn several_instances_start_at_once() {
    let database = TestDatabase::new();
    let opened = (0..8).map(|_| {
        let url = database.url().to_owned();
        tokio::spawn(async move { Store::open(&url).await.map(|_| ()) })
    });
    for opened in opened.collect::<Vec<_>>() {
        opened.await.unwrap().unwrap();
    }
    let beside = database.connect().await;
    let sql = "SELECT COUNT(*) AS many FROM agentkit_migrations WHERE version = 'v1'";
    let sql = Statement::from_string(beside.get_database_backend(), sql);
    let row = beside.query_one_raw(sql).await.unwrap().unwrap();
    assert_eq!(row.try_get::<i64>("", "many").unwrap(), 1);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let world = World::new();
    world.store().await;
    world
        .tamper("INSERT INTO agentkit_migrations (version, applied_at) VALUES ('v9', 0)")
        .await;
    let error = Store::open(&world.url()).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error:?}");
    assert!(error.to_string().contains("v9"), "{error}");
}

#[tokio::test]
async fn a_run_of_a_newer_format_is_not_touched() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    world.tamper("UPDATE agentkit_runs SET format = 99").await;
    assert!(desk.decide(&fiona(), approve(&call)).await.is_err());
    assert!(desk.resume_and_wait(&run).await.is_err());
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn two_prefixes_in_one_database_are_two_stores() {
    let world = World::new();
    let store = |prefix: &str| {
        let (url, options) = (world.url(), Store::options().prefix(prefix));
        async move { options.open(&url).await.unwrap() }
    };
    let first = world.builder::<Desk>(pays("bob", 5)).await;
    let first = first.store(store("first_").await).build().unwrap();
    let (run, call) = stopped(&first).await;
    let second = world.builder::<Desk>(pays("bob", 5)).await;
    let second = second.store(store("second_").await).build().unwrap();
    assert!(second.decide(&fiona(), approve(&call)).await.is_err());
    first.decide(&fiona(), approve(&call)).await.unwrap();
    finished(first.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
    let error = Store::options()
        .prefix("Robert'); DROP TABLE")
        .open(&world.url())
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Prefix { .. }), "{error:?}");
}

#[tokio::test]
async fn the_application_hands_in_its_own_connection() {
    let world = World::new();
    let own = world.database.connect().await;
    own.execute_unprepared("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        .await
        .unwrap();
    let store = Store::options().adopt(own.clone()).await.unwrap();
    let desk = world.builder::<Desk>(pays("bob", 5)).await;
    let desk = desk.store(store).build().unwrap();
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    own.execute_unprepared("INSERT INTO orders (id) VALUES (1)")
        .await
        .unwrap();
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}
