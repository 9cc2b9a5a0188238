//! The 115 retail tasks through the whole runtime: a scripted model proposes each task's right
//! calls; what only reads runs alone, what changes something waits for a person.

use std::{collections::HashMap, sync::Arc};

use agentkit::{
    agent::Approval,
    call::{CallId, CallState, Canonical, RunId},
    model::scripted::ScriptedModel,
    prelude::*,
};

use super::{
    direct::{WRITING, execute},
    shared::SharedShop,
    shop::Shop,
    tools::{RetailDesk, RetailDeskPending},
};
use crate::workloads::{self, Task};

pub(super) fn changes(tool: &str) -> bool {
    WRITING.contains(&tool)
}

fn approval<T: Tool>(pending: Pending<T>) -> Approval<T> {
    match pending {
        Pending::Approval(approval) => approval,
        Pending::Question(_) => panic!("no tool of the shop asks questions"),
    }
}

fn decide<T: Tool>(pending: Pending<T>, approve: bool) -> (Canonical, Decision) {
    let approval = approval(pending);
    // The typed arguments are those that are stored and shown.
    let typed = Canonical::of(&approval.args).unwrap();
    let stored = approval.call().arguments.clone();
    assert_eq!(typed.as_bytes(), stored.as_bytes());
    let decision = if approve {
        approval.approve()
    } else {
        approval.decline("the customer said no")
    };
    (stored, decision)
}

fn decide_any(pending: RetailDeskPending, approve: bool) -> (Canonical, Decision) {
    match pending {
        RetailDeskPending::CancelPendingOrder(pending) => decide(pending, approve),
        RetailDeskPending::ExchangeDeliveredOrderItems(pending) => decide(pending, approve),
        RetailDeskPending::ModifyPendingOrderAddress(pending) => decide(pending, approve),
        RetailDeskPending::ModifyPendingOrderItems(pending) => decide(pending, approve),
        RetailDeskPending::ModifyPendingOrderPayment(pending) => decide(pending, approve),
        RetailDeskPending::ModifyUserAddress(pending) => decide(pending, approve),
        RetailDeskPending::ReturnDeliveredOrderItems(pending) => decide(pending, approve),
        _ => panic!("a call that only reads waits for a person"),
    }
}

/// The desk that the customer talks to, and another instance on the same database, where the
/// decisions are made.
struct Desks {
    front: Hosted<RetailDesk>,
    office: Hosted<RetailDesk>,
    shop: Arc<SharedShop>,
    store: Store,
}

impl Desks {
    async fn open(shop: Shop, model: &ScriptedModel) -> Self {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let shop = Arc::new(SharedShop::new(shop));
        let host = || {
            RetailDesk::builder()
                .store(store.clone())
                .model(model.clone())
                .ctx_shared(Arc::clone(&shop))
                .build()
                .unwrap()
        };
        Self {
            front: host(),
            office: host(),
            shop: Arc::clone(&shop),
            store,
        }
    }

    /// Plays one task. Gives the calls about which a person was asked.
    async fn play(&self, task: &Task, approve: bool) -> (RunId, HashMap<CallId, Canonical>) {
        let customer = Principal::new("customer", "test");
        let clerk = Principal::new("clerk", "test");
        let input = Input::new(customer, task.order()).max_steps(99);
        let mut outcome = self.front.generate(input).await.unwrap();
        let mut asked = HashMap::new();
        loop {
            match outcome {
                Outcome::Finished { run, .. } => return (run, asked),
                Outcome::Suspended(suspended) => {
                    assert!(suspended.in_doubt.is_empty() && suspended.unfit.is_empty());
                    for pending in suspended.pending {
                        let before = self.shop.executed().len();
                        let (arguments, decision) = decide_any(pending, approve);
                        let call = decision.call.clone();
                        self.office.decide(&clerk, decision).await.unwrap();
                        assert_eq!(self.shop.executed().len(), before, "deciding runs nothing");
                        asked.insert(call, arguments);
                    }
                    let run = suspended.run;
                    outcome = self.office.resume_and_wait(&run).await.unwrap();
                }
                _ => panic!("an outcome that is not known here"),
            }
        }
    }
}

/// The retail tasks and the shop, unless the data are absent.
pub(super) fn data(what: &str) -> Option<(Vec<Task>, Shop)> {
    let folder = workloads::folder(what)?;
    let mut tasks = workloads::tasks(&folder, "tau-bench.jsonl");
    tasks.retain(|task| task.suite == "tau-retail");
    Some((tasks, Shop::load(&folder)))
}

#[tokio::test]
async fn approving_everything_leaves_the_shop_as_executing_the_calls_does() {
    let Some((tasks, shop)) = data("the retail tasks, all calls approved") else {
        return;
    };
    let model = workloads::script(&tasks, changes);
    let desks = Desks::open(shop.clone(), &model).await;
    let mut counted = (0, 0, 0);
    for task in &tasks {
        desks.shop.reopen(shop.clone());
        let (run, asked) = desks.play(task, true).await;

        let mut direct = shop.clone();
        let mut refused = Vec::new();
        for call in &task.calls {
            refused.push(execute(&mut direct, &call.tool, &call.args).is_err());
        }
        assert_eq!(*desks.shop.read(), direct, "task {}", task.number);

        let calls = desks.store.calls(&run).await.unwrap();
        assert_eq!(calls.len(), task.calls.len());
        for ((call, wanted), refused) in calls.iter().zip(&task.calls).zip(refused) {
            let stored = call.arguments.as_ref().unwrap();
            assert_eq!(call.tool, wanted.tool);
            assert_eq!(*stored, Canonical::of(&wanted.args).unwrap());
            assert_eq!(asked.contains_key(&call.id), changes(&call.tool));
            let state = if refused {
                CallState::Failed
            } else {
                CallState::Succeeded
            };
            assert_eq!(call.state, state, "{}: {:?}", call.tool, call.outcome);
        }
        let executed = desks.shop.executed();
        assert_eq!(executed.len(), asked.len(), "each approved call ran once");
        for executed in &executed {
            let approved = &asked[&executed.call];
            assert_eq!(
                executed.arguments.as_bytes(),
                approved.as_bytes(),
                "{}",
                executed.tool
            );
        }
        desks.store.verify_journal(&run).await.unwrap().unwrap();
        counted.0 += 1;
        counted.1 += calls.len();
        counted.2 += asked.len();
    }
    workloads::check_conversations(&model);
    assert_eq!(counted, (115, 582, 178), "tasks, calls, approvals");
}

#[tokio::test]
async fn declining_everything_leaves_the_shop_untouched() {
    let Some((tasks, shop)) = data("the retail tasks, all calls declined") else {
        return;
    };
    let model = workloads::script(&tasks, changes);
    let desks = Desks::open(shop.clone(), &model).await;
    let mut asked = 0;
    for task in &tasks {
        desks.shop.reopen(shop.clone());
        let (run, declined) = desks.play(task, false).await;
        assert_eq!(*desks.shop.read(), shop, "task {}", task.number);
        assert_eq!(desks.shop.executed(), []);
        for call in desks.store.calls(&run).await.unwrap() {
            let declined = call.state == CallState::Declined;
            assert_eq!(
                declined,
                changes(&call.tool),
                "{}: {:?}",
                call.tool,
                call.outcome
            );
        }
        asked += declined.len();
    }
    workloads::check_conversations(&model);
    assert_eq!(asked, 178, "how often a person was asked");
}
