use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::client::House;

async fn waiting(house: &House, input: &str) -> Value {
    house.asked(input).await["pending"][0].clone()
}

fn item(pending: &Value) -> Value {
    json!({
        "run": pending["run"], "call": pending["call"], "fingerprint": pending["fingerprint"],
    })
}

fn note(to: &str) -> String {
    format!(r#"send_note {{"to":"{to}","body":"hi","channel":"mail","cc":null}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn and_each_call_is_decided_by_itself() {
    let house = House::open().await;
    let (ada, bea) = (
        waiting(&house, &note("ada")).await,
        waiting(&house, &note("bea")).await,
    );
    let (status, _) = house
        .person("felix")
        .decides(&bea, json!({ "decision": "decline" }))
        .await;
    assert_eq!(status, StatusCode::OK);
    let batch = json!({ "approve": [item(&bea), item(&ada)] });
    let (status, done) = house.person("fiona").post("/v1/approvals", &batch).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    let outcomes = &done["outcomes"];
    assert_eq!(outcomes[0]["problem"]["status"], 409);
    assert_eq!(outcomes[0]["problem"]["decision"]["approver"], "felix");
    assert_eq!(outcomes[1]["decided"]["state"], "approved");
    assert_eq!(house.effects(1).await, ["note ada hi Mail "]);
}

#[tokio::test(flavor = "multi_thread")]
async fn and_others_are_refused_as_a_whole() {
    let house = House::open().await;
    let fiona = house.person("fiona");
    let one = waiting(&house, &note("ada")).await;
    let file = waiting(&house, r#"read_file {"customer":"c-1"}"#).await;
    let pay = waiting(&house, r#"pay {"to":"bob","cents":1}"#).await;
    let cents = waiting(&house, r#"pay {"to":"bob","cents":2}"#).await;
    for mixed in [
        json!({ "approve": [item(&one), item(&file)] }),
        json!({ "approve": [item(&pay), item(&cents)] }),
    ] {
        let (status, problem) = fiona.post("/v1/approvals", &mixed).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    }
    let mut unknown = item(&one);
    unknown["run"] = pay["run"].clone();
    for (body, expected) in [
        (json!({ "approve": [] }), 400),
        (json!({ "approve": vec![item(&one); 101] }), 400),
        (json!({ "approve": [item(&one)], "by": "fiona" }), 400),
        (json!({ "approve": [item(&one), unknown] }), 404),
    ] {
        let (status, problem) = fiona.post("/v1/approvals", &body).await;
        assert_eq!(status.as_u16(), expected, "{problem}");
    }
    let (status, _) = house
        .person("eve")
        .post("/v1/approvals", &json!({ "approve": [item(&one)] }))
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(house.ledger.effects().is_empty());
    let (_, page) = fiona.get("/v1/pending").await;
    assert_eq!(page["pending"].as_array().unwrap().len(), 4);
}
