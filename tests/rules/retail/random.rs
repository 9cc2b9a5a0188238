//! The retail tasks with people who approve, decline and amend at random, and processes that are
//! replaced or die between any two steps.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use agentkit::{
    approval::{PendingCall, Verdict},
    call::{CallId, CallState, Canonical, RunId},
    model::scripted::ScriptedModel,
    prelude::*,
    store::{Page, RunFilter},
};
use serde_json::{Value, json};

use super::{
    dice::Dice,
    direct::execute,
    process::Process,
    replay::{changes, data},
    shared::SharedShop,
    shop::Shop,
};
use crate::{
    desk::{World, about},
    workloads::{self, Task},
};

/// How many tasks are played unless `AGENTKIT_RETAIL_TASKS` says otherwise.
const TASKS: usize = 24;

/// Other arguments for the same tool, where it has some that may differ.
fn amended(arguments: &Value) -> Value {
    let mut other = arguments.clone();
    match arguments.get("reason").and_then(Value::as_str) {
        Some("no longer needed") => other["reason"] = json!("ordered by mistake"),
        Some(_) => other["reason"] = json!("no longer needed"),
        None => {}
    }
    if arguments.get("address2").is_some() {
        other["address2"] = json!("Suite 7");
    }
    for list in ["item_ids", "new_item_ids"] {
        if let Some(items) = other.get_mut(list).and_then(Value::as_array_mut) {
            items.reverse();
        }
    }
    other
}

struct Game {
    world: Arc<World>,
    /// For what the test reads itself.
    store: Store,
    shop: Arc<SharedShop>,
    model: ScriptedModel,
    dice: Dice,
    fate: Arc<Mutex<Dice>>,
    process: Process,
    counted: HashMap<&'static str, u32>,
}

impl Game {
    async fn new(shop: Shop, model: ScriptedModel) -> Self {
        let world = Arc::new(World::new());
        let shop = Arc::new(SharedShop::new(shop));
        let fate = Arc::new(Mutex::new(Dice(0x0B50_1E7E)));
        Self {
            process: Process::start(&world, &shop, &model, &fate).await,
            store: world.store().await,
            world,
            shop,
            model,
            dice: Dice(0x5DEE_CE66),
            fate,
            counted: HashMap::new(),
        }
    }

    async fn replace(&mut self, why: &'static str) {
        self.count(why);
        self.process = Process::start(&self.world, &self.shop, &self.model, &self.fate).await;
    }

    /// Replaces the process, sometimes.
    async fn restart(&mut self) {
        if self.dice.roll(2) == 0 {
            self.replace("restarts").await;
        }
    }

    /// Goes on with a run until it is put down, in as many processes as it takes.
    async fn go_on(&mut self, run: &RunId) {
        loop {
            let (desk, run) = (self.process.desk.clone(), run.clone());
            let work = async move { desk.resume_and_wait(&run).await.map(drop).unwrap() };
            match self.process.run(work).await {
                Some(()) => return,
                None => self.replace("deaths").await,
            }
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counted.entry(what).or_default() += 1;
    }

    /// Decides about a call until it no longer waits. Gives the arguments that were approved.
    async fn decide(&mut self, mut call: PendingCall) -> Option<Canonical> {
        loop {
            let verdict = match self.dice.roll(4) {
                0 => {
                    self.count("declined");
                    Verdict::Decline { reason: None }
                }
                1 => {
                    self.count("amended");
                    let arguments = amended(&call.arguments.to_value().unwrap());
                    Verdict::Amend {
                        arguments: Canonical::of(&arguments).unwrap(),
                        reason: None,
                    }
                }
                _ => {
                    self.count("approved");
                    Verdict::Approve
                }
            };
            let clerk = Principal::new("clerk", "test");
            let decision = about(&call, verdict);
            let desk = self.process.desk.clone();
            let deciding = async move { desk.decide(&clerk, decision).await.unwrap() };
            let decided = self.process.run(deciding).await.unwrap();
            self.restart().await;
            match decided.state {
                CallState::Declined => return None,
                CallState::Approved => return Some(call.arguments),
                CallState::AwaitingApproval => {
                    let waiting = self.store.pending(&call.run).await.unwrap();
                    let again = waiting.into_iter().find(|other| other.call == call.call);
                    call = again.unwrap();
                }
                other => panic!("{other}"),
            }
        }
    }

    async fn last_run(&self) -> RunId {
        let page = Page {
            after: None,
            size: 1000,
        };
        let found = self.store.runs(&RunFilter::default(), &page).await.unwrap();
        found.last().unwrap().run.id.clone()
    }

    async fn play(&mut self, task: &Task, shop: &Shop) {
        self.shop.reopen(shop.clone());
        let customer = Principal::new("customer", "test");
        let input = Input::new(customer, task.order()).max_steps(99);
        let desk = self.process.desk.clone();
        let starting = async move { desk.stream(input).await.unwrap().run().clone() };
        // A run is there as soon as it is started, whatever becomes of the process.
        let run = match self.process.run(starting).await {
            Some(run) => run,
            None => {
                self.replace("deaths").await;
                self.last_run().await
            }
        };
        let mut approved: HashMap<CallId, Canonical> = HashMap::new();
        self.go_on(&run).await;
        loop {
            self.restart().await;
            let waiting = self.store.pending(&run).await.unwrap();
            if waiting.is_empty() {
                break;
            }
            for call in waiting {
                let id = call.call.clone();
                if let Some(arguments) = self.decide(call).await {
                    approved.insert(id, arguments);
                }
            }
            self.go_on(&run).await;
        }
        // The oracle: the shop after exactly what was approved, in the order of the calls.
        let mut oracle = shop.clone();
        for call in self.store.calls(&run).await.unwrap() {
            let Some(arguments) = approved.get(&call.id) else {
                assert!(
                    call.state == CallState::Declined || !changes(&call.tool),
                    "{}",
                    call.state
                );
                continue;
            };
            assert_eq!(call.arguments.as_ref(), Some(arguments));
            let done = execute(&mut oracle, &call.tool, &arguments.to_value().unwrap());
            let state = if done.is_ok() {
                CallState::Succeeded
            } else {
                CallState::Failed
            };
            assert_eq!(call.state, state, "{}: {:?}", call.tool, call.outcome);
        }
        assert_eq!(*self.shop.read(), oracle, "task {}", task.number);
        assert_eq!(
            self.shop.executed().len(),
            approved.len(),
            "each approved call ran once"
        );
        self.store.verify_journal(&run).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_shop_is_what_people_approved_whatever_they_decide_and_whoever_dies() {
    let Some((tasks, shop)) = data("the retail tasks, decided at random") else {
        return;
    };
    let most = std::env::var("AGENTKIT_RETAIL_TASKS")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(TASKS);
    let model = workloads::script(&tasks, changes);
    let mut game = Game::new(shop.clone(), model).await;
    for task in tasks.iter().take(most) {
        game.play(task, &shop).await;
    }
    workloads::check_conversations(&game.model);
    for what in ["approved", "declined", "amended", "restarts", "deaths"] {
        let count = game.counted.get(what).copied().unwrap_or(0);
        assert!(count >= 3, "{what}: {count}");
    }
}
