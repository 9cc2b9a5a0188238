use agentkit::{
    prelude::*,
    server::{Development, Server},
};
use reqwest::{Method, StatusCode, header};
use serde_json::json;

use crate::{
    client::{House, Person, database, http},
    house::{self, Ledger},
};

#[tokio::test(flavor = "multi_thread")]
async fn and_without_them_nobody_is_anybody() {
    let house = House::open().await;
    for path in [
        "/v1/me",
        "/v1/pending",
        "/v1/runs",
        "/v1/agents",
        "/metrics",
        "/v1/pending/live",
    ] {
        let stranger = house.stranger();
        let (status, problem) = stranger.get(path).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(problem["type"], "about:blank#unauthorized");
        for token in [
            "",
            "x",
            "fiona",
            &house::token("fiona")[1..],
            &"x".repeat(5000),
        ] {
            let person = Person {
                token: Some(token.to_owned()),
                ..house.stranger()
            };
            let (status, _) = person.get(path).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} {token}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn and_never_from_a_body_a_query_or_a_header() {
    let house = House::open().await;
    let run = house.asked(r#"pay {"to":"bob","cents":500}"#).await;
    let clara = house.person("clara");
    let request = clara
        .request(Method::GET, "/v1/me?user=fiona&id=fiona")
        .header("x-user", "fiona")
        .header("x-forwarded-user", "fiona");
    let me: serde_json::Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(me["id"], "clara");
    let forged = json!({ "input": "hi", "requester": "fiona" });
    let (status, _) = clara.post("/v1/agents/house-desk/runs", &forged).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    // Whoever asked does not approve, whatever the body says.
    let (status, problem) = clara
        .decides(&run["pending"][0], json!({ "decision": "approve" }))
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_signs_in_for_this_site_only() {
    let house = House::open().await;
    let stranger = house.stranger();
    let token = house::token("fiona");
    let sign_in = |site: &'static str| {
        let request = stranger
            .request(Method::POST, "/inbox/session")
            .header("sec-fetch-site", site);
        request.json(&json!({ "token": token })).send()
    };
    assert_eq!(
        sign_in("cross-site").await.unwrap().status(),
        StatusCode::FORBIDDEN
    );
    let answer = sign_in("same-origin").await.unwrap();
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    let cookie = answer.headers()[header::SET_COOKIE]
        .to_str()
        .unwrap()
        .to_owned();
    for part in ["HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let pair = cookie.split(';').next().unwrap();
    let me = |site: &'static str| {
        let request = stranger
            .request(Method::GET, "/v1/me")
            .header(header::COOKIE, pair);
        request.header("sec-fetch-site", site).send()
    };
    assert_eq!(me("same-origin").await.unwrap().status(), StatusCode::OK);
    assert_eq!(
        me("cross-site").await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_development_sign_in_is_for_this_machine_only() {
    let desk = house::desk(&database(), Ledger::default()).await;
    let people = Development::anyone_on_this_machine_as([Principal::new("clara", "development")]);
    let router = Server::builder(people).agent(&desk).build().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(agentkit::server::serve(
        listener,
        router.clone(),
        std::future::pending(),
    ));
    let clara = Person {
        base,
        token: Some("clara".to_owned()),
        http: http(),
    };
    let (status, me) = clara.get("/v1/me").await;
    assert_eq!(status, StatusCode::OK);
    assert!(me["warning"].as_str().unwrap().contains("Development"));
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("forwarded", "for=x"),
        ("host", "evil.example"),
    ] {
        let answer = clara
            .request(Method::GET, "/v1/me")
            .header(name, value)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{name}");
    }
}
