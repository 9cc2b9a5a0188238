use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{
    client::{House, many},
    events::{Event, Events},
};

const START: &str = "/v1/agents/house-desk/runs";

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_last_event_that_was_seen() {
    let house = House::open().await;
    let clara = house.person("clara");
    let start = clara.request(Method::POST, START);
    let start = start.json(&json!({ "input": r#"pay {"to":"bob","cents":500}"# }));
    let seen = Events::answering(start).await.rest().await;
    assert_eq!(seen[0].name, "run");
    let run = seen[0].data["run"].as_str().unwrap();
    let last = seen.last().unwrap();
    assert_eq!(last.name, "suspended", "{seen:?}");
    let ids: Vec<_> = seen.iter().skip(1).map(|event| event.id.unwrap()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    // From the start it is the same again.
    let path = format!("/v1/runs/{run}/events");
    let again = Events::answering(clara.request(Method::GET, &path)).await;
    let again = again.rest().await;
    assert_eq!(names(&again), names(&seen[1..]));
    // In the midst, by header and by query.
    let middle = ids[ids.len() / 2];
    let by_header = clara
        .request(Method::GET, &path)
        .header("last-event-id", middle);
    let by_query = clara.request(Method::GET, &format!("{path}?after={middle}"));
    for request in [by_header, by_query] {
        let rest = Events::answering(request).await.rest().await;
        let left: Vec<_> = ids.iter().copied().filter(|id| *id > middle).collect();
        let told: Vec<_> = rest.iter().map(|event| event.id.unwrap()).collect();
        assert_eq!(told, left);
    }
    // Nothing follows while it waits.
    let end = format!("{path}?after={}", ids.last().unwrap());
    assert_eq!(clara.get(&end).await.0, StatusCode::NO_CONTENT);
    // Whoever attaches after the decision sees what came of it, on another instance too.
    let pending = &seen
        .iter()
        .find(|event| event.name == "pending")
        .unwrap()
        .data;
    let (status, _) = house
        .person("fiona")
        .decides(pending, json!({ "decision": "approve" }))
        .await;
    assert_eq!(status, StatusCode::OK);
    let other = House::on(&house.database, many()).await;
    let rest = Events::answering(other.person("clara").request(Method::GET, &end)).await;
    let rest = rest.rest().await;
    assert!(names(&rest).contains(&"tool_ended"), "{rest:?}");
    assert_eq!(rest.last().unwrap().name, "finished");
    assert_eq!(rest.last().unwrap().data["reason"], "answered");
    assert_eq!(house.ledger.effects(), ["pay bob 500"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn and_a_client_that_leaves_changes_nothing() {
    let house = House::open().await;
    let clara = house.person("clara");
    let start = clara.request(Method::POST, START);
    let start = start.json(&json!({ "input": r#"pay {"to":"bob","cents":500}"# }));
    let mut events = Events::answering(start).await;
    let run = events.next().await.1["run"].as_str().unwrap().to_owned();
    drop(events);
    let path = format!("/v1/runs/{run}/events");
    let all = Events::answering(clara.request(Method::GET, &path)).await;
    assert_eq!(all.rest().await.last().unwrap().name, "suspended");
}

#[tokio::test(flavor = "multi_thread")]
async fn but_only_by_those_who_may_see_the_whole_run() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let path = format!("/v1/runs/{}/events", run["id"].as_str().unwrap());
    for (name, expected) in [
        ("clara", 200),
        ("audrey", 200),
        ("fiona", 404),
        ("eve", 404),
    ] {
        let answer = house.person(name).request(Method::GET, &path).send().await;
        assert_eq!(answer.unwrap().status(), expected, "{name}");
    }
    let clara = house.person("clara");
    for id in ["x", "-1", "1.5", "99999999999999999999", ""] {
        let request = clara
            .request(Method::GET, &path)
            .header("last-event-id", id);
        assert_eq!(request.send().await.unwrap().status(), 400, "{id}");
    }
}
