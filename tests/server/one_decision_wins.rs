use reqwest::StatusCode;
use serde_json::json;

use crate::client::House;

#[tokio::test(flavor = "multi_thread")]
async fn and_whoever_loses_learns_which() {
    let house = House::open().await;
    for round in 0..5 {
        let run = house
            .asked(&format!(r#"pay {{"to":"bob","cents":{}}}"#, 100 + round))
            .await;
        let pending = run["pending"][0].clone();
        let mut all = tokio::task::JoinSet::new();
        for (name, decision) in [
            ("fiona", "approve"),
            ("felix", "decline"),
            ("fiona", "approve"),
            ("felix", "decline"),
            ("fiona", "approve"),
        ] {
            let (person, pending) = (house.person(name), pending.clone());
            all.spawn(async move {
                let answer = person
                    .decides(&pending, json!({ "decision": decision }))
                    .await;
                (decision, answer)
            });
        }
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        while let Some(done) = all.join_next().await {
            let (decision, (status, body)) = done.unwrap();
            match status {
                StatusCode::OK => accepted.push(decision),
                StatusCode::CONFLICT => refused.push(body["decision"]["decision"].clone()),
                other => panic!("{other} {body}"),
            }
        }
        accepted.dedup();
        assert_eq!(accepted.len(), 1, "one kind of decision: {accepted:?}");
        assert!(
            refused.iter().all(|told| *told == accepted[0]),
            "{refused:?} {accepted:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn and_runs_once_however_often_it_is_repeated() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":1}"#).await;
    let pending = run["pending"][0].clone();
    let fiona = house.person("fiona");
    for repeated in [false, true, true] {
        let (status, decided) = fiona
            .decides(&pending, json!({ "decision": "approve" }))
            .await;
        assert_eq!(status, StatusCode::OK, "{decided}");
        assert_eq!(decided["repeated"], repeated);
        house.effects(1).await;
    }
    let (status, refused) = fiona
        .decides(&pending, json!({ "decision": "decline" }))
        .await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["decision"]["decision"], "approve");
    assert_eq!(house.ledger.effects(), ["pay bob 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn about_its_own_call_only() {
    let house = House::open().await;
    let one = house.asked(r#"pay {"to":"bob","cents":1}"#).await;
    let other = house.asked(r#"pay {"to":"bob","cents":1}"#).await;
    let mut mixed = one["pending"][0].clone();
    mixed["fingerprint"] = other["pending"][0]["fingerprint"].clone();
    let (status, problem) = house
        .person("fiona")
        .decides(&mixed, json!({ "decision": "approve" }))
        .await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(problem["type"], "about:blank#fingerprint-mismatch");
    assert!(house.ledger.effects().is_empty());
}
