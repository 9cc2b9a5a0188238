use reqwest::StatusCode;
use serde_json::json;

use crate::client::{House, decision_path};

#[tokio::test(flavor = "multi_thread")]
async fn for_strangers_and_other_tenants() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let pending = &run["pending"][0];
    let (id, call) = (
        run["id"].as_str().unwrap(),
        pending["call"].as_str().unwrap(),
    );
    let paths = [
        format!("/v1/runs/{id}"),
        format!("/v1/runs/{id}/calls/{call}"),
        format!("/v1/runs/{id}/journal"),
        format!("/v1/runs/{id}/journal/verification"),
    ];
    // Eve has no role, Carl is another clerk, Otto approves elsewhere.
    for name in ["eve", "carl", "otto"] {
        let person = house.person(name);
        for path in &paths {
            let (status, real) = person.get(path).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{name} {path}");
            let (status, made_up) = person.get(&path.replace(id, "no-such-run")).await;
            assert_eq!(
                (status, real),
                (StatusCode::NOT_FOUND, made_up),
                "told apart: {path}"
            );
        }
        let (status, problem) = person
            .decides(pending, json!({ "decision": "approve" }))
            .await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{name} {problem}");
        let (_, page) = person.get("/v1/pending").await;
        assert_eq!(page["pending"], json!([]), "{name}");
        let (_, page) = person.get("/v1/runs?requester=clara").await;
        assert_eq!(page["runs"], json!([]), "{name}");
    }
    assert!(house.ledger.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_requester_approver_and_auditor_see_their_part() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let pending = &run["pending"][0];
    let id = run["id"].as_str().unwrap();
    let can = async |name: &str| {
        let (_, page) = house.person(name).get("/v1/pending").await;
        page["pending"][0]["can"].clone()
    };
    assert_eq!(can("clara").await, json!(["cancel"]));
    assert_eq!(can("fiona").await, json!(["approve", "decline", "amend"]));
    assert_eq!(can("audrey").await, json!([]));
    let (status, _) = house
        .person("audrey")
        .decides(pending, json!({ "decision": "approve" }))
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN, "seeing is not deciding");
    // The journal is for the requester and auditors.
    let journal = format!("/v1/runs/{id}/journal");
    for (name, status) in [("clara", 200), ("audrey", 200), ("fiona", 404)] {
        assert_eq!(
            house.person(name).get(&journal).await.0.as_u16(),
            status,
            "{name}"
        );
    }
    let (_, verified) = house
        .person("audrey")
        .get(&format!("{journal}/verification"))
        .await;
    assert_eq!(verified["whole"], true);
    // Resuming is for whoever started it.
    let (status, _) = house
        .person("fiona")
        .post(&format!("/v1/runs/{id}/resume"), &json!({}))
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    // Who lost still learns what was decided.
    house
        .person("felix")
        .decides(pending, json!({ "decision": "decline" }))
        .await;
    let (status, told) = house
        .person("fiona")
        .decides(pending, json!({ "decision": "approve" }))
        .await;
    assert_eq!(
        (status, &told["decision"]["approver"]),
        (StatusCode::CONFLICT, &json!("felix"))
    );
    let path = decision_path(pending);
    let (status, call) = house
        .person("fiona")
        .get(path.trim_end_matches("/decision"))
        .await;
    assert_eq!(
        (status, &call["state"]),
        (StatusCode::OK, &json!("declined"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn and_pages_hold_every_visible_call_once() {
    let house = House::open().await;
    let clara = house.person("clara");
    for number in 0..7 {
        clara
            .asks(&format!(r#"pay {{"to":"bob","cents":{}}}"#, 100 + number))
            .await;
        clara
            .asks(&format!(
                r#"send_note {{"to":"a","body":"{number}","channel":"mail","cc":null}}"#
            ))
            .await;
    }
    let fiona = house.person("fiona");
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let (status, page) = fiona
            .get(&format!("/v1/pending?tool=pay&limit=3{after}"))
            .await;
        assert_eq!(status, StatusCode::OK, "{page}");
        seen.extend(
            page["pending"]
                .as_array()
                .unwrap()
                .iter()
                .map(|call| call["call"].to_string()),
        );
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 7);
    seen.dedup();
    assert_eq!(seen.len(), 7);
    for query in [
        "limit=0",
        "limit=201",
        "limit=x",
        "kind=yes",
        "after=%00",
        "unknown=1",
    ] {
        let (status, _) = fiona.get(&format!("/v1/pending?{query}")).await;
        assert!(status.is_client_error(), "{query}: {status}");
    }
}
