//! The house behind a server, for a browser: `ui_server <database url> <port>`. Clara's requests
//! come in as lines on standard input.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unused_async,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "a program of the tests"
)]

#[path = "../server/house.rs"]
mod house;

use agentkit::{prelude::*, server::Server};
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (database, port) = (arguments.next().unwrap(), arguments.next().unwrap());
    let desk = house::desk(&database, house::Ledger::default()).await;
    let router = Server::builder(house::people())
        .agent(&desk)
        .build()
        .unwrap();
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}"))
        .await
        .unwrap();
    println!("listening on {}", listener.local_addr().unwrap());
    let asking = tokio::spawn(async move {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            let clara = Principal::new("clara", "token").role("clerk");
            let input = Input::new(clara, line.replace("\\n", "\n"));
            desk.generate(input).await.unwrap();
            println!("asked");
        }
    });
    agentkit::server::serve(listener, router, async { drop(asking.await) })
        .await
        .unwrap();
}
