//! A server that answers each request with the next scripted answer, and keeps what it was sent.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// One answer: a status, headers, and a body that may break off.
#[derive(Clone, Default)]
pub(super) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    /// How many bytes of the body are one chunk; chunk borders fall where they fall, even within
    /// a character.
    chunk: usize,
    close: Close,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Close {
    #[default]
    InOrder,
    /// The connection drops without the last chunk.
    Dropped,
}

#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, Vec<String>>,
    pub(super) body: Value,
}

pub(super) struct Server {
    address: std::net::SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Answer {
    /// A stream of server-sent events.
    pub(super) fn sse(body: impl Into<String>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream".into())],
            body: body.into(),
            chunk: usize::MAX,
            close: Close::InOrder,
        }
    }

    pub(super) fn refusal(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            ..Self::sse(body)
        }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(super) fn in_chunks_of(mut self, bytes: usize) -> Self {
        self.chunk = bytes;
        self
    }

    pub(super) fn dropped(mut self) -> Self {
        self.close = Close::Dropped;
        self
    }
}

impl Server {
    pub(super) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        let log = Arc::clone(&received);
        tokio::spawn(async move {
            while let Some(answer) = answers.pop_front() {
                let (stream, _) = listener.accept().await.unwrap();
                serve(stream, answer, &log).await;
            }
            // Further connections are taken, and get no answer.
            std::future::pending::<()>().await;
        });
        Self { address, received }
    }

    /// Without a slash at the end, as people write it.
    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, answer: Answer, log: &Mutex<Vec<Received>>) {
    let received = read_request(&mut stream).await;
    log.lock().unwrap().push(received);
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", answer.status);
    for (name, value) in &answer.headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    head.push_str("transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    for chunk in answer.body.as_bytes().chunks(answer.chunk.max(1)) {
        let size = format!("{:x}\r\n", chunk.len());
        // The client may have seen enough already.
        if stream
            .write_all(&[size.as_bytes(), chunk, b"\r\n"].concat())
            .await
            .is_err()
        {
            return;
        }
        stream.flush().await.unwrap();
    }
    if answer.close == Close::InOrder {
        let _ = stream.write_all(b"0\r\n\r\n").await;
    }
    let _ = stream.shutdown().await;
}

async fn read_request(stream: &mut TcpStream) -> Received {
    let mut bytes = Vec::new();
    let (head, mut body) = loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the client closed within its request");
        bytes.extend_from_slice(&buffer[..count]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = bytes.split_off(end + 4);
            break (String::from_utf8(bytes).unwrap(), body);
        }
    };
    let mut lines = head.split("\r\n");
    let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        headers
            .entry(name.to_ascii_lowercase())
            .or_default()
            .push(value.trim().to_owned());
    }
    let length: usize = headers["content-length"][0].parse().unwrap();
    while body.len() < length {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the client closed within its request");
        body.extend_from_slice(&buffer[..count]);
    }
    Received {
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap(),
    }
}
