//! A reader of server-sent events.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::client::Person;

pub struct Events {
    response: reqwest::Response,
    text: String,
}

/// One event.
#[derive(Debug)]
pub struct Event {
    pub id: Option<i64>,
    pub name: String,
    pub data: Value,
}

impl Events {
    /// The live list of a person.
    pub async fn live(person: &Person) -> Self {
        Self::answering(person.request(Method::GET, "/v1/pending/live")).await
    }

    pub async fn answering(request: RequestBuilder) -> Self {
        let response = request.header("accept", "text/event-stream").send().await;
        let response = response.unwrap();
        assert_eq!(response.status(), 200);
        Self {
            response,
            text: String::new(),
        }
    }

    pub async fn next(&mut self) -> (String, Value) {
        let event = self.event().await.expect("the stream goes on");
        (event.name, event.data)
    }

    /// The next event; none at the end.
    pub async fn event(&mut self) -> Option<Event> {
        tokio::time::timeout(Duration::from_secs(20), self.read())
            .await
            .expect("an event or the end")
    }

    /// All that is left.
    pub async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.event().await {
            all.push(event);
        }
        all
    }

    pub async fn read(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let frame: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    frame
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::trim)
                        .map(str::to_owned)
                };
                let id = field("id:").map(|id| id.parse().unwrap());
                let event = field("event:").zip(field("data:"));
                if let Some((name, data)) = event {
                    let data = serde_json::from_str(&data).unwrap();
                    return Some(Event { id, name, data });
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}
