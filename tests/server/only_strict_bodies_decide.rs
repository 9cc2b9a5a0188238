use reqwest::StatusCode;

use crate::client::{House, decision_path};

/// Anything but the exact shape is invalid: not an approval, not a refusal.
#[tokio::test(flavor = "multi_thread")]
async fn and_everything_else_changes_nothing() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let pending = &run["pending"][0];
    let fingerprint = pending["fingerprint"].as_str().unwrap();
    let fiona = house.person("fiona");
    let path = decision_path(pending);
    let with = |rest: &str| format!(r#"{{"fingerprint":"{fingerprint}"{rest}}}"#);
    for body in [
        with(r#","approved":"yes""#),
        with(r#","approved":true"#),
        with(r#","decision":"approved""#),
        with(r#","decision":true"#),
        with(r#","decision":null"#),
        with(r#","decision":"approve","approver":"fiona""#),
        with(r#","decision":"approve","arguments":{"to":"eve","cents":1}"#),
        with(r#","decision":"approve","decision":"decline""#),
        with(r#","decision":"decline","reason":7"#),
        with(r#","decision":"answer""#),
        with(r#","decision":"settle","happened":"succeeded""#),
        r#"{"decision":"approve"}"#.to_owned(),
        r#"{"decision":"approve","fingerprint":""}"#.to_owned(),
        r#"{"decision":"approve","fingerprint":"sha256:00"}"#.to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "true".to_owned(),
        String::new(),
        "{".to_owned(),
        format!("{}{}", "[".repeat(5000), "]".repeat(5000)),
    ] {
        let (status, problem) = fiona.post_text(&path, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {problem}");
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
    let (status, _) = fiona
        .get(&format!("/v1/runs/{}", run["id"].as_str().unwrap()))
        .await;
    assert_eq!(status, StatusCode::OK, "it still waits, and is hers to see");
    assert!(house.ledger.effects().is_empty());
}
