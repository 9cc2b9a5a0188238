use reqwest::StatusCode;
use serde_json::json;

use crate::client::House;

const PATH: &str = "/v1/agents/house-desk/policy/explain";

#[tokio::test(flavor = "multi_thread")]
async fn of_the_first_call_of_a_run_and_nothing_runs() {
    let house = House::open().await;
    let clara = house.person("clara");
    for (tool, arguments, outcome, quorum) in [
        // The tool derives that it is no night train, and nothing was touched yet.
        ("book_seat", json!({"train": "ICE 7"}), "allow", json!(null)),
        ("book_seat", json!({"train": "NJ 7"}), "deny", json!(null)),
        (
            "pay",
            json!({"to": "bob", "cents": 5}),
            "require_approval",
            json!(1),
        ),
        (
            "pay",
            json!({"to": "bob", "cents": 100_001}),
            "require_approval",
            json!(2),
        ),
    ] {
        let asked = json!({"tool": tool, "arguments": arguments});
        let (status, body) = clara.post(PATH, &asked).await;
        assert_eq!(status, StatusCode::OK, "{asked}: {body}");
        assert_eq!(body["outcome"], outcome, "{asked}: {body}");
        assert_eq!(body["quorum"], quorum, "{asked}: {body}");
        assert_eq!(body["errors"], json!([]), "{asked}: {body}");
    }
    assert!(house.effects(0).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn and_what_is_no_call_is_refused() {
    let house = House::open().await;
    let clara = house.person("clara");
    for (asked, expected) in [
        (json!({"tool": "fly", "arguments": {}}), 404),
        (json!({"tool": "pay", "arguments": {"to": "bob"}}), 422),
        (
            json!({"tool": "pay", "arguments": {"to": "bob", "cents": 5, "more": 1}}),
            422,
        ),
        (json!({"tool": "pay"}), 400),
    ] {
        let (status, body) = clara.post(PATH, &asked).await;
        assert_eq!(status, expected, "{asked}: {body}");
    }
}
