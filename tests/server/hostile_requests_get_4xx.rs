use std::time::Duration;

use agentkit::server::Limits;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    client::{House, database, many},
    house,
};

#[tokio::test(flavor = "multi_thread")]
async fn for_paths_and_methods_that_do_not_exist() {
    let house = House::open().await;
    let fiona = house.person("fiona");
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v2/me",
        "/v1/runs/..%2f..%2fetc%2fpasswd",
        "/v1/runs/%00",
        "/v1/runs/%ff%fe",
        "/inbox/../v1/me/x",
        "/inbox/%2e%2e/Cargo.toml",
        "/inbox/app.js/x",
        "/v1/agents/%27%3B%20DROP%20TABLE",
        "/v1/runs/a/calls/b",
        "/v1/runs//calls//decision",
    ] {
        let (status, _) = fiona.get(path).await;
        assert!(status.is_client_error(), "{path}: {status}");
    }
    for (method, path) in [
        (Method::DELETE, "/v1/pending"),
        (Method::PUT, "/v1/me"),
        (Method::OPTIONS, "/v1/me"),
        (Method::POST, "/healthz"),
    ] {
        let answer = fiona.request(method.clone(), path).send().await.unwrap();
        assert_eq!(
            answer.status(),
            StatusCode::METHOD_NOT_ALLOWED,
            "{method} {path}"
        );
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn for_bodies_that_are_too_large_and_of_the_wrong_kind() {
    let house = House::open().await;
    let clara = house.person("clara");
    let path = "/v1/agents/house-desk/runs";
    let large = json!({ "input": "x".repeat(2 << 20) });
    assert_eq!(
        clara.post(path, &large).await.0,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    let request = clara.request(Method::POST, path).body("input=hi");
    let answer = request
        .header("content-type", "application/x-www-form-urlencoded")
        .send()
        .await;
    assert_eq!(answer.unwrap().status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for body in [
        "\u{feff}{}",
        "{\"input\":\"\\ud800\"}",
        "{\"input\":\"\"}",
        "{\"input\":1e400}",
    ] {
        assert_eq!(
            clara.post_text(path, body).await.0,
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
    // An announced length is refused before a byte of it is read.
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 104857600\r\n\r\n",
        house::token("clara"),
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64];
    let read = stream.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 413"));
}

#[tokio::test(flavor = "multi_thread")]
async fn for_clients_that_are_too_slow() {
    let limits = many().time(Duration::from_millis(200));
    let house = House::on(&database(), limits).await;
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    let head = format!(
        "POST /v1/agents/house-desk/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        house::token("clara"),
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64];
    let reading = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut answer));
    let read = reading.await.unwrap().unwrap();
    assert!(
        answer[..read].starts_with(b"HTTP/1.1 408"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn for_callers_that_ask_too_often() {
    let house = House::on(&database(), Limits::default().streams(2, 3)).await;
    let clara = house.person("clara");
    let mut streams = Vec::new();
    for _ in 0..2 {
        streams.push(
            clara
                .request(Method::GET, "/v1/pending/live")
                .send()
                .await
                .unwrap(),
        );
    }
    let third = clara
        .request(Method::GET, "/v1/pending/live")
        .send()
        .await
        .unwrap();
    assert_eq!(third.status(), StatusCode::TOO_MANY_REQUESTS);
    let mut refused = 0;
    for _ in 0..400 {
        refused += usize::from(clara.get("/v1/me").await.0 == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(refused > 0);
    assert_eq!(
        house.person("fiona").get("/v1/me").await.0,
        StatusCode::OK,
        "others are not hit"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn and_every_answer_is_safe_in_a_browser() {
    let house = House::open().await;
    for path in [
        "/inbox/",
        "/inbox/app.js",
        "/v1/me",
        "/nothing",
        "/v1/openapi.json",
    ] {
        let answer = house
            .person("clara")
            .request(Method::GET, path)
            .send()
            .await
            .unwrap();
        let headers = answer.headers();
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe"),
            "{path}"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["x-frame-options"], "DENY");
        assert!(headers.contains_key("cache-control"));
    }
}
