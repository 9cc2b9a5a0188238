use std::sync::{Mutex, MutexGuard};

use agentkit::{
    call::{CallId, Canonical},
    tool::RunContext,
};
use serde_json::Value;

use super::shop::{Refusal, Shop};

/// The shop as the tools share it, with a record of what changed it.
pub(crate) struct SharedShop {
    shop: Mutex<Shop>,
    executed: Mutex<Vec<Executed>>,
}

/// A changing call that reached its tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Executed {
    pub(crate) call: CallId,
    pub(crate) tool: &'static str,
    /// What the tool was given, written down by the tool itself.
    pub(crate) arguments: Canonical,
}

impl SharedShop {
    pub(crate) fn new(shop: Shop) -> Self {
        Self {
            shop: Mutex::new(shop),
            executed: Mutex::default(),
        }
    }

    /// Opens anew, as if nothing had happened.
    pub(crate) fn reopen(&self, shop: Shop) {
        *self.shop.lock().unwrap() = shop;
        self.executed.lock().unwrap().clear();
    }

    pub(crate) fn read(&self) -> MutexGuard<'_, Shop> {
        self.shop.lock().unwrap()
    }

    /// Changes the shop, and records with which arguments.
    pub(crate) fn write<T>(
        &self,
        run: &RunContext,
        tool: &'static str,
        arguments: &Value,
        change: impl FnOnce(&mut Shop) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.executed.lock().unwrap().push(Executed {
            call: run.call.clone(),
            tool,
            arguments: Canonical::of(arguments).unwrap(),
        });
        change(&mut self.shop.lock().unwrap())
    }

    pub(crate) fn executed(&self) -> Vec<Executed> {
        self.executed.lock().unwrap().clone()
    }
}
