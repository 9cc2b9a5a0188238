//! The refund desk behind a server: people sign in to the inbox and approve there.
//!
//! `cargo run --features server --example approval_server`

#![allow(
    missing_docs,
    unreachable_pub,
    reason = "a program: nothing outside sees it"
)]

#[path = "../refund_desk/desk.rs"]
mod desk;
#[path = "../refund_desk/script.rs"]
mod script;
#[path = "../refund_desk/shop.rs"]
mod shop;

use agentkit::{
    prelude::*,
    server::{Development, Server, serve},
    store::{Page, RunFilter},
};

use crate::{desk::RefundDesk, shop::Shop};

type Failure = Box<dyn std::error::Error>;

const DATABASE: &str = "sqlite://approval_server.db?mode=rwc";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let desk = RefundDesk::builder()
        .store(Store::open(DATABASE).await?)
        .ctx(Shop::open(DATABASE).await?)
        .model(script::clerk())
        .build()?;
    if desk
        .suspended_runs(RunFilter::default(), &Page::default())
        .await?
        .is_empty()
    {
        ask(&desk).await?;
    }

    // In earnest: `StaticTokens`, `Oidc`, or an `Authenticator` of your own.
    let people = Development::anyone_on_this_machine_as([
        Principal::new("clara", "development").role("clerk"),
        Principal::new("fiona", "development").role("finance"),
        Principal::new("felix", "development").role("finance"),
    ]);
    let router = Server::builder(people).agent(&desk).build()?;

    // Goes on with what the last process left behind, and ends what nobody decided in time.
    let _worker = desk.worker(std::time::Duration::from_secs(1));
    let listener = tokio::net::TcpListener::bind(&address).await?;
    let address = listener.local_addr()?;
    println!("DEVELOPMENT SIGN-IN: anyone on this machine can be clara, fiona or felix.\n");
    println!("Inbox:    http://{address}/inbox/     (be fiona, who is finance)");
    println!("API:      http://{address}/v1/openapi.json\n");
    println!("Ask as clara, who is a clerk:");
    println!("  curl http://{address}/v1/agents/refund-desk/runs \\");
    println!("    -H 'authorization: Bearer clara' -H 'content-type: application/json' \\");
    println!(
        "    -H 'accept: text/event-stream' -d '{{\"input\": \"Refund 20.00 of order ord-1043\"}}'"
    );
    // Ctrl-C may come at any time: what is not done yet is on record.
    serve(listener, router, std::future::pending()).await?;
    Ok(())
}

/// Something to decide on the first start.
async fn ask(desk: &Hosted<RefundDesk>) -> Result<(), Failure> {
    for text in [
        "Refund order ord-1042",
        "Refund 5.50 of order ord-1043",
        "Refund order ord-1077",
        "What is the weather?",
    ] {
        let clara = Principal::new("clara", "development").role("clerk");
        desk.generate(Input::new(clara, text)).await?;
    }
    Ok(())
}
