//! Going on with runs without anyone asking for it.

use std::{sync::Arc, time::Duration};

use tokio::task::AbortHandle;

use super::{Running, Runtime, execute::expired};
use crate::{
    call::CallState,
    store::{Facts, StoreError},
};

/// The most calls and runs that are taken up at once.
const MOST: u64 = 100;

impl Runtime {
    /// Ends calls of this agent, and of agents below it, about which nobody decided in time; on
    /// the database's clock. Expiry is enforced without it wherever a call is read; this tells
    /// the runs that they can go on. Gives the number of calls.
    ///
    /// # Errors
    ///
    /// When the store fails; calls that were ended before stay so.
    pub async fn sweep(self: &Arc<Self>) -> Result<usize, StoreError> {
        let mut ended = 0;
        for call in self.store.overdue(MOST).await? {
            let Some(run) = self.store.run_of(&call).await? else {
                continue;
            };
            if self.at(&run.path).is_none() {
                continue;
            }
            let waits = |facts: &Facts| {
                let call = &facts.call;
                matches!(
                    call.state,
                    CallState::AwaitingApproval | CallState::AwaitingInput
                ) && call.expires_at.is_some_and(|until| until <= facts.now)
            };
            let facts = self
                .store
                .change_call(&run.id, None, &call, |facts| {
                    Ok::<_, StoreError>(waits(facts).then(|| expired(facts)))
                })
                .await?;
            ended += usize::from(facts.call.state == CallState::Expired);
        }
        Ok(ended)
    }

    /// Takes up runs of this agent that can go on and that nobody works on: decided about since
    /// they were put down, or left by an instance that died. A run that was interrupted by a
    /// failing model is left to whoever started it.
    ///
    /// # Errors
    ///
    /// When the store fails; runs that were taken up before are worked on.
    pub async fn take_up_waiting(self: &Arc<Self>) -> Result<Vec<Running>, StoreError> {
        self.record_policy().await?;
        let mut taken = Vec::new();
        for run in self.store.can_go_on(&self.agent, MOST).await? {
            let held = self
                .store
                .acquire(&run, &self.instance, self.settings.lease)
                .await;
            match held {
                Ok(held) => taken.push(self.take_up(&run, held)),
                // Another worker was faster.
                Err(StoreError::HeldElsewhere { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// Sweeps and takes up runs, again and again, until the worker is dropped. Any number of
    /// instances may have one.
    pub fn worker(self: &Arc<Self>, every: Duration) -> Worker {
        let runtime = Arc::clone(self);
        let work = async move {
            loop {
                if let Err(error) = runtime.sweep().await {
                    tracing::warn!(agent = %runtime.agent, %error, "sweeping calls");
                }
                // The work goes on by itself; its events are read by whoever attaches.
                if let Err(error) = runtime.take_up_waiting().await {
                    tracing::warn!(agent = %runtime.agent, %error, "taking up runs");
                }
                tokio::time::sleep(every).await;
            }
        };
        Worker(tokio::spawn(work).abort_handle())
    }
}

/// Goes on with runs until it is dropped; runs that it has taken up are finished all the same.
#[must_use = "the worker stops when it is dropped"]
pub struct Worker(AbortHandle);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.abort();
    }
}
