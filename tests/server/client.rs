//! A server on a listener of its own, and people who talk to it.

use std::{net::SocketAddr, num::NonZeroU32, time::Duration};

use agentkit::server::{self, Limits, Server};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::house::{self, Ledger};

pub struct House {
    pub address: SocketAddr,
    pub ledger: Ledger,
    pub database: String,
    stop: Option<oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<()>,
}

/// A database file of one test.
pub fn database() -> String {
    let dir = std::env::temp_dir().join(format!("agentkit-server-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(format!("{}.db", agentkit::call::RunId::new()));
    format!("sqlite://{}?mode=rwc", path.display())
}

pub fn many() -> Limits {
    let many = NonZeroU32::new(100_000).unwrap();
    Limits::default().rate(many, many).streams(5000, 5000)
}

impl House {
    pub async fn open() -> Self {
        Self::on(&database(), many()).await
    }

    pub async fn on(database: &str, limits: Limits) -> Self {
        let ledger = Ledger::default();
        let desk = house::desk(database, ledger.clone()).await;
        let router = Server::builder(house::people())
            .agent(&desk)
            .limits(limits)
            .build()
            .unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            server::serve(listener, router, shutdown).await.unwrap();
        });
        Self {
            address,
            ledger,
            database: database.to_owned(),
            stop: Some(stop),
            served,
        }
    }

    /// Stops the server; its database stays.
    pub async fn close(mut self) -> String {
        self.stop.take().unwrap().send(()).unwrap();
        self.served.await.unwrap();
        self.database
    }

    pub fn person(&self, name: &str) -> Person {
        Person {
            base: format!("http://{}", self.address),
            token: Some(house::token(name)),
            http: http(),
        }
    }

    pub fn stranger(&self) -> Person {
        Person {
            token: None,
            ..self.person("nobody")
        }
    }

    /// Starts a run of Clara's and gives it as soon as it waits.
    pub async fn asked(&self, input: &str) -> Value {
        self.person("clara").asks(input).await
    }

    /// Waits until the tools did something.
    pub async fn effects(&self, number: usize) -> Vec<String> {
        for _ in 0..400 {
            if self.ledger.effects().len() >= number {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.ledger.effects()
    }
}

pub fn http() -> reqwest::Client {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

#[derive(Clone)]
pub struct Person {
    pub base: String,
    pub token: Option<String>,
    pub http: reqwest::Client,
}

impl Person {
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        answer(self.request(Method::POST, path).json(body)).await
    }

    /// A body as it is, for what no library would send.
    pub async fn post_text(&self, path: &str, body: &str) -> (StatusCode, Value) {
        let request = self.request(Method::POST, path);
        answer(
            request
                .header("content-type", "application/json")
                .body(body.to_owned()),
        )
        .await
    }

    pub async fn asks(&self, input: &str) -> Value {
        let body = json!({ "input": input });
        let (status, run) = self.post("/v1/agents/house-desk/runs", &body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
        for _ in 0..400 {
            let (_, run) = self.get(&path).await;
            if run["status"] == "suspended" {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the run never waited");
    }

    pub async fn decides(&self, pending: &Value, mut decision: Value) -> (StatusCode, Value) {
        decision["fingerprint"] = pending["fingerprint"].clone();
        self.post(&decision_path(pending), &decision).await
    }
}

pub fn decision_path(pending: &Value) -> String {
    let text = |name: &str| pending[name].as_str().unwrap().to_owned();
    format!("/v1/runs/{}/calls/{}/decision", text("run"), text("call"))
}

async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, value)
}
