use std::time::Duration;

use serde_json::json;

use crate::{
    client::{House, many},
    events::Events,
};

#[tokio::test(flavor = "multi_thread")]
async fn of_what_comes_changes_and_goes() {
    let house = House::open().await;
    let early = house.asked(r#"pay {"to":"early","cents":1}"#).await;
    let mut events = Events::live(&house.person("fiona")).await;
    let (name, snapshot) = events.next().await;
    assert_eq!(name, "snapshot");
    assert_eq!(snapshot["pending"][0]["call"], early["pending"][0]["call"]);
    let late = house.asked(r#"pay {"to":"late","cents":500000}"#).await;
    let late = &late["pending"][0];
    let (name, call) = events.next().await;
    assert_eq!((name.as_str(), &call["call"]), ("upsert", &late["call"]));
    house
        .person("felix")
        .decides(late, json!({ "decision": "approve" }))
        .await;
    let (name, call) = events.next().await;
    assert_eq!(
        (name.as_str(), &call["still_needed"]),
        ("upsert", &json!(1)),
        "{call}"
    );
    house
        .person("fiona")
        .decides(late, json!({ "decision": "approve" }))
        .await;
    let (name, call) = events.next().await;
    assert_eq!((name.as_str(), &call["call"]), ("remove", &late["call"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn that_another_instance_did() {
    let house = House::open().await;
    let other = House::on(&house.database, many()).await;
    let mut events = Events::live(&other.person("fiona")).await;
    assert_eq!(events.next().await.0, "snapshot");
    let run = house.asked(r#"pay {"to":"bob","cents":1}"#).await;
    assert_eq!(events.next().await.0, "upsert");
    house
        .person("fiona")
        .decides(&run["pending"][0], json!({ "decision": "decline" }))
        .await;
    assert_eq!(events.next().await.0, "remove");
}

#[tokio::test(flavor = "multi_thread")]
async fn but_nothing_that_the_caller_may_not_see() {
    let house = House::open().await;
    house.asked(r#"pay {"to":"bob","cents":1}"#).await;
    for name in ["eve", "carl", "otto"] {
        let mut events = Events::live(&house.person(name)).await;
        let (_, snapshot) = events.next().await;
        assert_eq!(snapshot["pending"], json!([]), "{name}");
        house.asked(r#"pay {"to":"bob","cents":2}"#).await;
        let quiet = tokio::time::timeout(Duration::from_millis(1200), events.read()).await;
        assert!(quiet.is_err(), "{name} learned {quiet:?}");
    }
}
