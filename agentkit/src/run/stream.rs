use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::Stream;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinHandle},
};

use super::{Ending, RunError, RunEvent};
use crate::{
    call::{CallId, RunId},
    store::{Lease, RunEnd, Store, StoreError, StoredEvent},
};

/// An event of a run with its place. Numbers grow and may have gaps; whoever knows the last one
/// can attach again after it, in any process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sequenced {
    /// The place among all events of the run.
    pub sequence: i64,
    /// What happened.
    pub event: RunEvent,
}

/// A run that this process works on. It is a stream of [`RunEvent`]s, of which the last one says
/// how the work ended; so does [`ending`](Self::ending).
///
/// The work does not depend on it: dropping it neither cancels nor repeats anything.
pub struct Running {
    run: RunId,
    events: mpsc::UnboundedReceiver<Sequenced>,
    work: JoinHandle<Result<Ending, RunError>>,
}

impl Running {
    pub(super) const fn new(
        run: RunId,
        events: mpsc::UnboundedReceiver<Sequenced>,
        work: JoinHandle<Result<Ending, RunError>>,
    ) -> Self {
        Self { run, events, work }
    }

    /// The run's id, under which any process can continue it.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The next event; none once the work has ended.
    pub async fn next(&mut self) -> Option<RunEvent> {
        self.next_sequenced().await.map(|next| next.event)
    }

    /// The next event with its place, after which one can attach again.
    pub async fn next_sequenced(&mut self) -> Option<Sequenced> {
        self.events.recv().await
    }

    /// Waits until the work ends. Events that were not read are dropped.
    ///
    /// # Errors
    ///
    /// When the model or the store failed. The run can be resumed.
    pub async fn ending(self) -> Result<Ending, RunError> {
        let Self { run, work, .. } = self;
        work.await.unwrap_or(Err(RunError::CutOff { run }))
    }
}

impl Stream for Running {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        self.events
            .poll_recv(cx)
            .map(|next| next.map(|next| next.event))
    }
}

/// How often a holder writes what it has shown; a run that is shorter writes it at its end only.
const WRITE: Duration = Duration::from_millis(100);

/// Numbers that one holder of a lease has for its events.
const PER_EPOCH: u32 = 28;

/// What a run's listeners were shown and what is not written yet.
struct Outbox {
    live: mpsc::UnboundedSender<Sequenced>,
    waiting: Mutex<Waiting>,
    /// Held while events are written, so that they are written once.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    last: i64,
    events: VecDeque<StoredEvent>,
}

impl Outbox {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn written(&self, events: &[StoredEvent]) {
        let Some(last) = events.last() else { return };
        let mut waiting = self.waiting();
        while let Some(first) = waiting.events.front()
            && first.sequence <= last.sequence
        {
            waiting.events.pop_front();
        }
    }

    fn unwritten(&self) -> Vec<StoredEvent> {
        self.waiting().events.iter().cloned().collect()
    }
}

/// Where the work sends its events. Nobody has to listen.
#[derive(Clone)]
pub(super) struct Listener {
    outbox: Arc<Outbox>,
    /// The calls that were handed on, from the root's, with the agents that they were handed to.
    below: Vec<(CallId, String)>,
}

impl Listener {
    pub(super) fn channel() -> (Self, mpsc::UnboundedReceiver<Sequenced>) {
        let (live, receiver) = mpsc::unbounded_channel();
        let outbox = Outbox {
            live,
            waiting: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        };
        let listener = Self {
            outbox: Arc::new(outbox),
            below: Vec::new(),
        };
        (listener, receiver)
    }

    /// Begins to number events and to write them, until the guard is dropped. A later holder's
    /// numbers are all above an earlier one's.
    pub(super) fn begin(&self, store: Store, lease: Arc<Lease>) -> Writing {
        self.outbox.waiting().last = lease.epoch << PER_EPOCH;
        let outbox = Arc::clone(&self.outbox);
        let write = async move {
            loop {
                tokio::time::sleep(WRITE).await;
                let _writing = outbox.writing.lock().await;
                let events = outbox.unwritten();
                if events.is_empty() {
                    continue;
                }
                match store.append_events(&lease, &events).await {
                    Ok(()) => outbox.written(&events),
                    Err(StoreError::LeaseLost { .. }) => return,
                    Err(error) => tracing::warn!(run = %lease.run, %error, "writing events"),
                }
            }
        };
        Writing(tokio::spawn(write).abort_handle())
    }

    /// A listener for the run that a call was handed to.
    pub(super) fn below(&self, call: CallId, agent: String) -> Self {
        let mut listener = self.clone();
        listener.below.push((call, agent));
        listener
    }

    pub(super) fn send(&self, event: RunEvent) {
        // What waits surfaces at the root as it is, under one identity; all else of a run below
        // says where it comes from.
        let event =
            match event {
                RunEvent::Pending(_) => event,
                event => self.below.iter().rev().fold(event, |event, (call, agent)| {
                    RunEvent::Delegated {
                        call: call.clone(),
                        agent: agent.clone(),
                        event: Box::new(event),
                    }
                }),
            };
        let body = serde_json::to_string(&event);
        let mut waiting = self.outbox.waiting();
        waiting.last += 1;
        let sequence = waiting.last;
        match body {
            Ok(body) => waiting.events.push_back(StoredEvent { sequence, body }),
            Err(error) => tracing::warn!(%error, "an event that cannot be put as JSON"),
        }
        // A client that went away changes nothing.
        let _ = self.outbox.live.send(Sequenced { sequence, event });
    }

    /// Puts a run down and writes what was shown in the same transaction; `last` is shown after
    /// it, if the run was put down. Nothing else may be shown meanwhile.
    pub(super) async fn put_down(
        &self,
        store: &Store,
        lease: &Lease,
        end: &RunEnd,
        events: &[crate::journal::Event],
        last: Vec<RunEvent>,
    ) -> Result<bool, StoreError> {
        if !self.below.is_empty() {
            // The root's listener writes for all.
            let down = store.put_down(lease, end, events, &[]).await?;
            if down {
                for event in last {
                    self.send(event);
                }
            }
            return Ok(down);
        }
        let _writing = self.outbox.writing.lock().await;
        let mut shown = self.outbox.unwritten();
        let before = self.outbox.waiting().last;
        let last: Vec<_> = (before + 1..).zip(last).collect();
        for (sequence, event) in &last {
            let body = serde_json::to_string(event)
                .map_err(|error| StoreError::corrupt("event", lease.run.as_str(), error))?;
            shown.push(StoredEvent {
                sequence: *sequence,
                body,
            });
        }
        let down = store.put_down(lease, end, events, &shown).await?;
        if down {
            self.outbox.written(&shown);
            for (sequence, event) in last {
                self.outbox.waiting().last = sequence;
                let _ = self.outbox.live.send(Sequenced { sequence, event });
            }
        }
        Ok(down)
    }
}

/// Writes a listener's events until it is dropped.
pub(super) struct Writing(AbortHandle);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.abort();
    }
}
