use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::client::{House, Person};

const START: &str = "/v1/agents/house-desk/runs";

async fn says(person: &Person, thread: &str, input: &str) -> (StatusCode, Value) {
    let thread = json!({ "id": thread, "answers_questions": false });
    let body = json!({ "input": input, "thread": thread });
    let (status, run) = person.post(START, &body).await;
    if status != StatusCode::CREATED {
        return (status, run);
    }
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    for _ in 0..400 {
        let (_, run) = person.get(&path).await;
        if run["status"] != "running" {
            return (status, run);
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the run goes on and on");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_what_was_said_there() {
    let house = House::open().await;
    let clara = house.person("clara");
    says(&clara, "t-1", "good morning").await;
    says(&clara, "t-1", r#"pay {"to":"bob","cents":500}"#).await;
    says(&clara, "t-2", "another matter").await;
    let (status, page) = clara.get("/v1/threads/t-1").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let runs = page["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(
        runs[0]["messages"],
        json!([
            { "who": "user", "text": "good morning" },
            { "who": "model", "text": "You said: good morning" },
        ])
    );
    assert_eq!(runs[1]["status"], "suspended");
    assert_eq!(runs[1]["calls"][0]["state"], "awaiting_approval");
    // A page at a time, backwards.
    let (_, last) = clara.get("/v1/threads/t-1?limit=1").await;
    assert_eq!(last["runs"][0]["run"], runs[1]["run"]);
    let before = last["before"].as_i64().unwrap();
    let (_, first) = clara
        .get(&format!("/v1/threads/t-1?limit=1&before={before}"))
        .await;
    assert_eq!(first["runs"][0]["run"], runs[0]["run"]);
    assert_eq!(first["before"], Value::Null);
    let (_, listed) = clara.get("/v1/runs?thread=t-1").await;
    assert_eq!(listed["runs"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn and_to_others_they_do_not_exist() {
    let house = House::open().await;
    says(&house.person("clara"), "t-1", "good morning").await;
    for name in ["carl", "fiona", "eve", "otto"] {
        let person = house.person(name);
        let (status, real) = person.get("/v1/threads/t-1").await;
        let (_, made_up) = person.get("/v1/threads/t-9").await;
        assert_eq!((status, &real), (StatusCode::NOT_FOUND, &made_up), "{name}");
    }
    let (status, _) = says(&house.person("carl"), "t-1", "and I?").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    // Another tenant's thread of that name is another thread.
    let (status, _) = says(&house.person("otto"), "t-1", "and I?").await;
    assert_eq!(status, StatusCode::CREATED);
    for id in ["", &"x".repeat(129)] {
        let (status, problem) = says(&house.person("clara"), id, "hello").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
    }
}
