use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{RunError, RunEvent, Runtime, Sequenced};
use crate::{
    call::RunId,
    store::{RunStatus, StoreError},
};

/// The most events that are read at once.
const PAGE: u64 = 500;

/// The shortest and the longest pause between two looks into the database.
const PAUSE: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(250)];

/// The events of a run, read from the database, whichever process works on it.
pub struct Attached {
    runtime: Arc<Runtime>,
    run: RunId,
    after: i64,
    read: VecDeque<Sequenced>,
    over: bool,
}

impl Runtime {
    /// Attaches to the events of a run: those after a sequence number, and what follows until it
    /// is put down and nothing is decided that somebody will go on with. A run below another one
    /// is shown from the root.
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, or the store fails.
    pub async fn attach(self: &Arc<Self>, run: &RunId, after: i64) -> Result<Attached, RunError> {
        let record = self.check_owner(run).await?;
        Ok(Attached {
            runtime: Arc::clone(self),
            run: record.id,
            after,
            read: VecDeque::new(),
            over: false,
        })
    }
}

impl Attached {
    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The next event; none once the run is put down and all its events were read.
    ///
    /// # Errors
    ///
    /// When the store fails. Calling again goes on where it was.
    pub async fn next(&mut self) -> Result<Option<Sequenced>, RunError> {
        let mut pause = PAUSE[0];
        loop {
            if let Some(next) = self.read.pop_front() {
                self.after = next.sequence;
                return Ok(Some(next));
            }
            if self.over {
                return Ok(None);
            }
            // First whether it is put down, then the events: the last ones are written with it.
            let down = self.is_down().await?;
            self.fetch().await?;
            if self.read.is_empty() {
                if down {
                    self.over = true;
                } else {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE[1]);
                }
            }
        }
    }

    async fn is_down(&self) -> Result<bool, RunError> {
        let run = self.runtime.store.run(&self.run).await;
        run.map(|run| match run.status {
            RunStatus::Running => false,
            RunStatus::Suspended => !run.woken,
            _ => true,
        })
        .map_err(|source| self.failed(source))
    }

    async fn fetch(&mut self) -> Result<(), RunError> {
        let store = &self.runtime.store;
        let found = store.events(&self.run, self.after, PAGE).await;
        for stored in found.map_err(|source| self.failed(source))? {
            let event: RunEvent = serde_json::from_str(&stored.body).map_err(|error| {
                self.failed(StoreError::corrupt("event", self.run.as_str(), error))
            })?;
            self.read.push_back(Sequenced {
                sequence: stored.sequence,
                event,
            });
        }
        Ok(())
    }

    fn failed(&self, source: StoreError) -> RunError {
        RunError::Store {
            run: self.run.clone(),
            source,
        }
    }
}
