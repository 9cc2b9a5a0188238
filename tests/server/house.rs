//! A house with a desk for every kind of request, behind a server: what the tests of the server
//! and of its inbox are about.

use std::sync::{Arc, Mutex};

use agentkit::{
    model::{
        Message, ModelRequest, ResultStatus,
        scripted::{Reply, ScriptedModel},
    },
    policy::PolicySource,
    prelude::*,
    server::{SecretHash, StaticTokens},
};
use serde::{Deserialize, Serialize};

/// What the tools did.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    fn add(&self, effect: String) {
        self.0.lock().unwrap().push(effect);
    }

    pub fn effects(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Pay somebody out of the company's account.
#[tool(require_approval = "Money leaves the company.", destructive)]
pub async fn pay(
    /// Who is paid.
    to: String,
    /// How much, in cents.
    cents: u64,
    #[ctx] ledger: &Ledger,
) -> String {
    ledger.add(format!("pay {to} {cents}"));
    format!("paid {to}")
}

/// How a note is sent.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Mail,
    Letter,
}

/// Send a note to a customer.
#[tool(require_approval)]
pub async fn send_note(
    /// The customer.
    to: String,
    /// What it says.
    body: String,
    /// How it is sent.
    channel: Channel,
    /// Who else gets it.
    cc: Option<Vec<String>>,
    #[ctx] ledger: &Ledger,
) -> String {
    let (channel, cc) = (format!("{channel:?}"), cc.unwrap_or_default());
    ledger.add(format!("note {to} {body} {channel} {}", cc.join("+")));
    "sent".to_owned()
}

/// Look into a customer's file.
#[tool(require_approval = "Files hold personal data.", read_only)]
pub async fn read_file(customer: String, #[ctx] ledger: &Ledger) -> String {
    ledger.add(format!("read {customer}"));
    "nothing special".to_owned()
}

/// What `book_seat` asks.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WhichSeat {
    pub question: String,
    pub free: Vec<u32>,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seat {
    /// The number of the seat.
    pub seat: u32,
    /// At the window?
    pub window: bool,
}

/// Book a seat on a train; asks which one.
#[tool(
    suspend = WhichSeat,
    resume = Seat,
    facts(night = |args| args.train.starts_with("NJ ")),
)]
pub async fn book_seat(
    train: String,
    #[resume] answer: Option<Seat>,
    #[ctx] ledger: &Ledger,
) -> Flow<String, WhichSeat> {
    match answer {
        None => Flow::Suspend(WhichSeat {
            question: format!("Which seat on {train}?"),
            free: vec![7, 8, 21],
        }),
        Some(Seat { seat, window }) => {
            ledger.add(format!("book {train} {seat} {window}"));
            Flow::Done(format!("seat {seat} is yours"))
        }
    }
}

/// The desk of the house.
#[agent(
    name = "house-desk",
    model = "scripted/house",
    instructions = "Do as you are told.",
    tools = [pay, send_note, read_file, book_seat],
)]
pub struct HouseDesk;

const POLICY: &str = r#"
@id("seats") permit (principal, action == Action::"book_seat", resource)
when { !context.derived.night && !context.session.labels.contains("barred") };

@id("small-payments")
@title("Payments up to 1,000.00")
@why("One person of finance looks at every payment.")
permit (principal in Role::"clerk", action == Action::"pay with approval", resource)
when { context.input.cents <= 100000 && context.approvals.count >= 1 };

@id("large-payments")
@title("Payments above 1,000.00")
@why("Large payments take two people of finance.")
permit (principal in Role::"clerk", action == Action::"pay with approval", resource)
when { context.approvals.count >= 2 };

@id("notes")
permit (principal in Role::"clerk", action == Action::"send_note with approval", resource)
when { context.approvals.count >= 1 };

@id("files")
permit (principal in Role::"clerk", action == Action::"read_file with approval", resource)
when { context.approvals.count >= 1 };

@id("finance-approves-payments")
@title("Finance approves payments")
permit (principal in Role::"finance", action == Action::"approve pay", resource);

@id("finance-approves-notes")
permit (principal in Role::"finance", action == Action::"approve send_note", resource);

@id("finance-approves-files")
permit (principal in Role::"finance", action == Action::"approve read_file", resource);

@id("nobody-approves-their-own-payment")
@why("Whoever asks does not approve.")
forbid (principal, action == Action::"approve pay", resource) when { principal == context.requester };
"#;

/// The model calls what the user writes: `pay {"to":"bob","cents":500}`, several on several lines.
fn answer(request: &ModelRequest) -> Reply {
    if let Some(Message::Tool(message)) = request.messages.last() {
        let words = message.results.iter().map(|result| match result.status {
            ResultStatus::Succeeded => format!("Done: {}.", result.content),
            _ => format!("Not done: {}.", result.content),
        });
        return Reply::text(words.collect::<Vec<_>>().join(" "));
    }
    let text = request.last_user_text().unwrap_or_default();
    let mut reply = Reply::text("I looked at it, and this is what I would do.");
    let mut called = false;
    for line in text.lines() {
        let Some((tool, arguments)) = line.split_once(' ') else {
            continue;
        };
        if let Ok(arguments) = serde_json::from_str::<serde_json::Value>(arguments) {
            reply = reply.call(tool, &arguments);
            called = true;
        }
    }
    if called {
        reply
    } else {
        Reply::text(format!("You said: {text}"))
    }
}

/// The desk on a database.
pub async fn desk(url: &str, ledger: Ledger) -> Hosted<HouseDesk> {
    HouseDesk::builder()
        .store(Store::open(url).await.unwrap())
        .policies(vec![PolicySource::new("house.cedar", POLICY)])
        .model(ScriptedModel::new().answering(answer))
        .ctx(ledger)
        .build()
        .unwrap()
}

/// The token of a person: long enough for one, and known.
pub fn token(name: &str) -> String {
    format!("{name}-0123456789abcdef0123456789")
}

/// Clara and Carl are clerks, Fiona and Felix finance, Gina is both, Audrey audits, Eve is nobody,
/// and Otto is a financier of another tenant.
pub fn people() -> StaticTokens {
    let person = |name: &str| Principal::new(name, "token");
    [
        person("clara").role("clerk"),
        person("carl").role("clerk"),
        person("fiona").role("finance"),
        person("felix").role("finance"),
        person("gina").role("clerk").role("finance"),
        person("audrey").role("auditor"),
        person("eve"),
        person("otto").role("finance").tenant("elsewhere"),
    ]
    .into_iter()
    .fold(StaticTokens::new(), |tokens, person| {
        let hash = SecretHash::of(&token(&person.id));
        tokens.token(hash, person)
    })
}
