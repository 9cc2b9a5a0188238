//! The retail tasks with people who approve, decline and amend at random, and processes that are
//! replaced between any two steps.

use std::{collections::HashMap, sync::Arc};

use agentkit::{
    approval::{PendingCall, Verdict},
    call::{CallId, CallState, Canonical},
    model::scripted::ScriptedModel,
    prelude::*,
};
use serde_json::{Value, json};

use super::{
    direct::execute,
    replay::{changes, data},
    shared::SharedShop,
    shop::Shop,
    tools::RetailDesk,
};
use crate::{
    desk::about,
    workloads::{self, Task},
};

/// How many tasks are played unless `AGENTKIT_RETAIL_TASKS` says otherwise.
const TASKS: usize = 24;

/// xorshift64*: a test that fails must fail again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }
}

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
    store: Store,
    shop: Arc<SharedShop>,
    model: ScriptedModel,
    dice: Dice,
    desk: Hosted<RetailDesk>,
    counted: HashMap<&'static str, u32>,
}

impl Game {
    fn host(store: &Store, shop: &Arc<SharedShop>, model: &ScriptedModel) -> Hosted<RetailDesk> {
        RetailDesk::builder()
            .store(store.clone())
            .model(model.clone())
            .ctx_shared(Arc::clone(shop))
            .build()
            .unwrap()
    }

    /// Replaces the process, sometimes.
    fn restart(&mut self) {
        if self.dice.roll(2) == 0 {
            self.desk = Self::host(&self.store, &self.shop, &self.model);
            *self.counted.entry("restarts").or_default() += 1;
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
            let decided = self.desk.decide(&clerk, decision).await.unwrap();
            self.restart();
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

    async fn play(&mut self, task: &Task, shop: &Shop) {
        self.shop.reopen(shop.clone());
        let customer = Principal::new("customer", "test");
        let input = Input::new(customer, task.order()).max_steps(99);
        let running = self.desk.stream(input).await.unwrap();
        let run = running.run().clone();
        let mut approved: HashMap<CallId, Canonical> = HashMap::new();
        running.ending().await.unwrap();
        loop {
            self.restart();
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
            self.desk.resume_and_wait(&run).await.map(drop).unwrap();
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
    let store = Store::open("sqlite::memory:").await.unwrap();
    let shared = Arc::new(SharedShop::new(shop.clone()));
    let mut game = Game {
        desk: Game::host(&store, &shared, &model),
        store,
        shop: shared,
        model,
        dice: Dice(0x5DEE_CE66),
        counted: HashMap::new(),
    };
    for task in tasks.iter().take(most) {
        game.play(task, &shop).await;
    }
    workloads::check_conversations(&game.model);
    for what in ["approved", "declined", "amended", "restarts"] {
        let count = game.counted.get(what).copied().unwrap_or(0);
        assert!(count >= 3, "{what}: {count}");
    }
}
