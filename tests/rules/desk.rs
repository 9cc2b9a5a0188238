//! A small desk that all rules use: tools with effects that can be counted, a scripted model, and
//! a database of its own for every test.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agentkit::{
    agent::{AgentBuilder, Suspended},
    approval::{PendingCall, PendingKind, Verdict},
    model::scripted::{Reply, ScriptedModel},
    policy::PolicySource,
    prelude::*,
    store::{CallRecord, Store},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::database::TestDatabase;

/// Everything that tools did, outside of the database.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    pub fn add(&self, effect: impl Into<String>) {
        self.0.lock().unwrap().push(effect.into());
    }

    pub fn effects(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Lets a test hold a tool inside its execution.
#[derive(Clone, Default)]
pub struct Hold(Arc<tokio::sync::Notify>, Arc<AtomicU32>);

impl Hold {
    pub fn let_go(&self) {
        self.0.notify_one();
    }
}

/// Pay somebody.
#[tool(require_approval = "money leaves", destructive)]
pub async fn pay(to: String, cents: u64, #[ctx] ledger: &Ledger) -> Result<String, String> {
    if to == "broken" {
        return Err("the bank is closed".to_owned());
    }
    ledger.add(format!("pay {to} {cents}"));
    Ok(format!("paid {to}"))
}

/// Read a balance.
#[tool(read_only)]
pub async fn balance(of: String, #[ctx] ledger: &Ledger) -> u64 {
    ledger.add(format!("balance {of}"));
    42
}

/// Send something that takes long.
#[tool]
pub async fn send(what: String, #[ctx] ledger: &Ledger, #[ctx] hold: &Hold) -> String {
    ledger.add(format!("send {what}"));
    hold.0.notified().await;
    "sent".to_owned()
}

/// Works until it is asked to stop.
#[tool]
pub async fn stoppable(#[ctx] ledger: &Ledger, #[ctx] run: &RunContext) -> String {
    ledger.add("stoppable");
    run.cancellation.cancelled().await;
    "stopped half-way".to_owned()
}

/// Writes down how many calls of it run at once.
#[tool]
pub async fn counted(number: u32, #[ctx] ledger: &Ledger, #[ctx] hold: &Hold) -> u32 {
    let now = hold.1.fetch_add(1, Ordering::SeqCst) + 1;
    ledger.add(now.to_string());
    // Long enough for another one to begin on a machine that is busy.
    tokio::time::sleep(Duration::from_millis(300)).await;
    hold.1.fetch_sub(1, Ordering::SeqCst);
    number
}

/// Send something, under a key that makes a second time harmless.
#[tool(idempotent)]
pub async fn send_once(
    what: String,
    #[ctx] ledger: &Ledger,
    #[ctx] hold: &Hold,
    #[ctx] run: &RunContext,
) -> String {
    ledger.add(format!("send_once {what} {}", run.idempotency_key));
    hold.0.notified().await;
    "sent".to_owned()
}

/// What `book` asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AskSeat {
    pub free: Vec<u32>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seat {
    pub seat: u32,
}

/// Book a seat on a train; asks which one.
#[tool(suspend = AskSeat, resume = Seat, require_approval)]
pub async fn book(
    train: String,
    #[resume] answer: Option<Seat>,
    #[ctx] ledger: &Ledger,
) -> Flow<String, AskSeat> {
    match answer {
        None => Flow::Suspend(AskSeat { free: vec![7, 8] }),
        Some(Seat { seat }) => {
            ledger.add(format!("book {train} {seat}"));
            Flow::Done(format!("seat {seat}"))
        }
    }
}

/// Writes down what it is given; its fields have names that mean something elsewhere.
#[tool(require_approval)]
pub async fn note(approved: bool, resume_data: String, #[ctx] ledger: &Ledger) {
    ledger.add(format!("note {approved} {resume_data}"));
}

/// Writes down what the application gave along.
#[tool]
pub async fn whoami(#[ctx] run: &RunContext, #[ctx] ledger: &Ledger) {
    ledger.add(format!("whoami {:?}", run.request));
}

/// What `ask_weather` asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AskCity {
    pub question: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct City {
    pub city: String,
}

/// The weather of a city; asks which one.
#[tool(suspend = AskCity, resume = City, read_only)]
pub async fn ask_weather(#[resume] answer: Option<City>) -> Flow<String, AskCity> {
    match answer {
        None => Flow::Suspend(AskCity {
            question: "Which city?".to_owned(),
        }),
        Some(City { city }) => Flow::Done(format!("{city}: 18")),
    }
}

/// Ask for a number, without approval.
#[tool(suspend = AskSeat, resume = Seat)]
pub async fn choose(#[resume] answer: Option<Seat>) -> Flow<u32, AskSeat> {
    match answer {
        None => Flow::Suspend(AskSeat { free: vec![1] }),
        Some(Seat { seat }) => Flow::Done(seat),
    }
}

/// The desk.
#[agent(
    name = "desk",
    model = "test/scripted",
    instructions = "You are a desk.",
    tools = [pay, balance, send, send_once, book, choose, stoppable, counted, ask_weather, note, whoami],
)]
pub struct Desk;

/// Another agent on the same database.
#[agent(name = "other", model = "test/scripted", instructions = "You are another.", tools = [pay])]
pub struct Other;

/// Who asks.
pub fn alice() -> Principal {
    Principal::new("alice", "test").role("clerk")
}

/// Who approves.
pub fn fiona() -> Principal {
    Principal::new("fiona", "test").role("finance")
}

/// Who approves too.
pub fn frank() -> Principal {
    Principal::new("frank", "test").role("finance")
}

/// A database and what the tools did; hosts as many instances as a test wants.
pub struct World {
    pub database: TestDatabase,
    pub ledger: Ledger,
    pub hold: Hold,
}

impl World {
    /// On the back end under test.
    pub fn new() -> Self {
        Self::on(TestDatabase::new())
    }

    /// On a database of the test's choice.
    pub fn on(database: TestDatabase) -> Self {
        Self {
            database,
            ledger: Ledger::default(),
            hold: Hold::default(),
        }
    }

    pub fn url(&self) -> String {
        self.database.url().to_owned()
    }

    pub async fn store(&self) -> Store {
        Store::open(&self.url()).await.unwrap()
    }

    /// A builder for one more instance on this database.
    pub async fn builder<A: Agent>(&self, model: ScriptedModel) -> AgentBuilder<A> {
        A::builder()
            .store(self.store().await)
            .model(model)
            .ctx(self.ledger.clone())
            .ctx(self.hold.clone())
            .lease(Duration::from_secs(10))
    }

    /// One more instance on this database, without a policy.
    pub async fn host(&self, model: ScriptedModel) -> Hosted<Desk> {
        self.builder(model).await.build().unwrap()
    }

    /// One more instance, under a policy.
    pub async fn host_under(&self, model: ScriptedModel, policy: &str) -> Hosted<Desk> {
        let policies = vec![PolicySource::new("test.cedar", policy)];
        self.builder(model)
            .await
            .policies(policies)
            .build()
            .unwrap()
    }

    /// Changes rows by hand, as someone with access to the database could.
    pub async fn tamper(&self, sql: &str) {
        use sea_orm::ConnectionTrait as _;
        let database = self.database.connect().await;
        let changed = database.execute_unprepared(sql).await.unwrap();
        assert!(changed.rows_affected() > 0, "`{sql}` changed nothing");
    }
}

/// A model that asks for one payment and then says what came of it.
pub fn pays(to: &str, cents: u64) -> ScriptedModel {
    calls(Reply::calls().call("pay", &json!({"to": to, "cents": cents})))
}

/// A model that makes these calls and then repeats their results.
pub fn calls(reply: Reply) -> ScriptedModel {
    echo().reply(reply)
}

/// A model that repeats the results of its calls, one a line.
pub fn echo() -> ScriptedModel {
    ScriptedModel::new().answering(|request| {
        let results = request.last_results().iter();
        let lines: Vec<_> = results
            .map(|result| format!("{:?}: {}", result.status, result.content))
            .collect();
        Reply::text(lines.join("\n"))
    })
}

/// The run is suspended.
pub fn suspended<A: Agent>(outcome: Outcome<A>) -> Suspended<A> {
    match outcome {
        Outcome::Suspended(suspended) => suspended,
        Outcome::Finished { text, .. } => panic!("the run finished with: {text}"),
        _ => unreachable!(),
    }
}

/// The run is over, with this text.
pub fn finished<A: Agent>(outcome: Outcome<A>) -> String {
    match outcome {
        Outcome::Finished { text, .. } => text,
        Outcome::Suspended(suspended) => {
            panic!("the run waits for {} calls", suspended.pending.len())
        }
        _ => unreachable!(),
    }
}

/// Everything that waits in a run, untyped.
pub async fn waiting<A: Agent>(desk: &Hosted<A>, run: &agentkit::call::RunId) -> Vec<PendingCall> {
    desk.runtime().store().pending(run).await.unwrap()
}

/// The one call that waits in a run.
pub async fn the_one<A: Agent>(desk: &Hosted<A>, run: &agentkit::call::RunId) -> PendingCall {
    let mut waiting = waiting(desk, run).await;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    waiting.remove(0)
}

/// The stored calls of a run.
pub async fn stored<A: Agent>(desk: &Hosted<A>, run: &agentkit::call::RunId) -> Vec<CallRecord> {
    desk.runtime().store().calls(run).await.unwrap()
}

/// A decision about a call.
pub fn about(call: &PendingCall, verdict: Verdict) -> Decision {
    Decision {
        run: call.run.clone(),
        call: call.call.clone(),
        fingerprint: call.fingerprint,
        verdict,
    }
}

/// An approval of a call.
pub fn approve(call: &PendingCall) -> Decision {
    assert_eq!(call.kind, PendingKind::Approval);
    about(call, Verdict::Approve)
}

/// An amendment of a call.
pub fn amend(call: &PendingCall, arguments: &serde_json::Value) -> Decision {
    let arguments = agentkit::call::Canonical::of(arguments).unwrap();
    about(
        call,
        Verdict::Amend {
            arguments,
            reason: None,
        },
    )
}

/// A refusal of a call.
pub fn decline(call: &PendingCall, reason: &str) -> Decision {
    about(
        call,
        Verdict::Decline {
            reason: Some(reason.to_owned()),
        },
    )
}

/// A run that has stopped at one call.
pub async fn stopped(desk: &Hosted<Desk>) -> (agentkit::call::RunId, PendingCall) {
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(desk, &run).await;
    (run, call)
}
