//! A process that hosts the shop's desk, and that may die between any two steps of a run.

use std::sync::{Arc, Mutex};

use agentkit::{
    model::{ChatModel, ModelError, ModelName, ModelRequest, ModelStream, scripted::ScriptedModel},
    prelude::*,
};
use tokio::sync::Notify;

use super::{dice::Dice, shared::SharedShop, tools::RetailDesk};
use crate::desk::World;

/// How many times on average a model is asked until a process dies of it.
const STEPS_OF_A_LIFE: u64 = 16;

/// A model whose process may die when the run asks it: everything before is durable, nothing
/// after has begun.
struct Mortal {
    model: ScriptedModel,
    fate: Arc<Mutex<Dice>>,
    died: Arc<Notify>,
}

#[async_trait::async_trait]
impl ChatModel for Mortal {
    fn name(&self) -> &ModelName {
        self.model.name()
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let dies = self.fate.lock().unwrap().roll(STEPS_OF_A_LIFE) == 0;
        if dies {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
        self.model.stream(request).await
    }
}

/// The threads of one process, and what it hosts.
pub(super) struct Process {
    threads: Option<tokio::runtime::Runtime>,
    pub(super) desk: Hosted<RetailDesk>,
    died: Arc<Notify>,
}

impl Process {
    /// Starts a process on the database of `world`.
    pub(super) async fn start(
        world: &Arc<World>,
        shop: &Arc<SharedShop>,
        model: &ScriptedModel,
        fate: &Arc<Mutex<Dice>>,
    ) -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let died = Arc::new(Notify::new());
        let mortal = Mortal {
            model: model.clone(),
            fate: Arc::clone(fate),
            died: Arc::clone(&died),
        };
        let (world, shop) = (Arc::clone(world), Arc::clone(shop));
        let hosting = threads.spawn(async move {
            RetailDesk::builder()
                .store(world.store().await)
                .model(mortal)
                .ctx_shared(shop)
                // Whoever takes over waits for the lease of the dead.
                .lease(std::time::Duration::from_secs(1))
                .build()
                .unwrap()
        });
        Self {
            desk: hosting.await.unwrap(),
            threads: Some(threads),
            died,
        }
    }

    /// Does something in the process. None if it died of it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let threads = self.threads.as_ref().unwrap();
        tokio::select! {
            done = threads.spawn(work) => Some(done.unwrap()),
            () = self.died.notified() => None,
        }
    }
}

impl Drop for Process {
    /// Everything stops where it is: nothing is finished, nothing is given back.
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}
