use reqwest::StatusCode;
use serde_json::json;

use crate::client::{House, many};

#[tokio::test(flavor = "multi_thread")]
async fn by_itself_with_what_was_approved() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let pending = &run["pending"][0];
    assert_eq!(pending["arguments_text"], r#"{"cents":500,"to":"bob"}"#);
    let fiona = house.person("fiona");
    let (status, decided) = fiona
        .decides(pending, json!({ "decision": "approve" }))
        .await;
    assert_eq!(status, StatusCode::OK, "{decided}");
    assert_eq!(decided["state"], "approved");
    assert_eq!(house.effects(1).await, ["pay bob 500"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_when_enough_people_approved() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500000}"#).await;
    let pending = &run["pending"][0];
    assert_eq!(pending["quorum"], 2);
    let (status, first) = house
        .person("fiona")
        .decides(pending, json!({ "decision": "approve" }))
        .await;
    assert_eq!(
        (status, &first["still_needed"]),
        (StatusCode::OK, &json!(1))
    );
    assert!(house.ledger.effects().is_empty());
    let (status, _) = house
        .person("felix")
        .decides(pending, json!({ "decision": "approve" }))
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(house.effects(1).await, ["pay bob 500000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_amended_arguments_once_they_are_approved() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let pending = &run["pending"][0];
    let fiona = house.person("fiona");
    // Beyond what a browser's numbers hold: every digit counts.
    let cents = 9_007_199_254_740_993_u64;
    let amend = json!({ "decision": "amend", "arguments": { "to": "bob", "cents": cents } });
    let (status, amended) = fiona.decides(pending, amend).await;
    assert_eq!(
        (status, &amended["state"]),
        (StatusCode::OK, &json!("awaiting_approval"))
    );
    let (status, old) = fiona
        .decides(pending, json!({ "decision": "approve" }))
        .await;
    assert_eq!(
        status,
        StatusCode::CONFLICT,
        "votes belong to a fingerprint: {old}"
    );
    let run = run["id"].as_str().unwrap();
    let (_, run) = house.person("clara").get(&format!("/v1/runs/{run}")).await;
    let pending = &run["pending"][0];
    for name in ["fiona", "felix"] {
        let (status, _) = house
            .person(name)
            .decides(pending, json!({ "decision": "approve" }))
            .await;
        assert_eq!(status, StatusCode::OK);
    }
    assert_eq!(house.effects(1).await, ["pay bob 9007199254740993"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_answer_to_a_question() {
    let house = House::open().await;
    let run = house.asked(r#"book_seat {"train":"ICE 1"}"#).await;
    let clara = house.person("clara");
    let pending = &run["pending"][0];
    assert_eq!(pending["kind"], "question");
    let wrong = json!({ "decision": "answer", "data": { "seat": "seven", "window": true } });
    let (status, problem) = clara.decides(pending, wrong).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        problem["detail"].as_str().unwrap().contains("seat"),
        "{problem}"
    );
    let right = json!({ "decision": "answer", "data": { "seat": 7, "window": true } });
    let (status, decided) = clara.decides(pending, right).await;
    assert_eq!(status, StatusCode::OK, "{decided}");
    assert_eq!(house.effects(1).await, ["book ICE 1 7 true"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn also_after_a_restart_of_the_server() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let database = house.close().await;
    let house = House::on(&database, many()).await;
    let (status, _) = house
        .person("fiona")
        .decides(&run["pending"][0], json!({ "decision": "approve" }))
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(house.effects(1).await, ["pay bob 500"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn and_a_decline_tells_the_model_why() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let decline = json!({ "decision": "decline", "reason": "Bob was paid already" });
    let (status, _) = house
        .person("fiona")
        .decides(&run["pending"][0], decline)
        .await;
    assert_eq!(status, StatusCode::OK);
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    for _ in 0..400 {
        let (_, run) = house.person("clara").get(&path).await;
        if run["status"] == "finished" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let call = run["pending"][0]["call"].as_str().unwrap();
    let (_, call) = house
        .person("clara")
        .get(&format!("{path}/calls/{call}"))
        .await;
    assert_eq!(call["state"], "declined");
    assert!(
        call["outcome"]
            .as_str()
            .unwrap()
            .contains("Bob was paid already"),
        "{call}"
    );
    assert!(house.ledger.effects().is_empty());
}
