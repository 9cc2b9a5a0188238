use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::Stream;
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Ending, RunError, RunEvent};
use crate::call::{CallId, RunId};

/// A run that this process works on. It is a stream of [`RunEvent`]s; [`ending`](Self::ending)
/// says how the work ended.
///
/// The work does not depend on it: dropping it neither cancels nor repeats anything.
pub struct Running {
    run: RunId,
    events: mpsc::UnboundedReceiver<RunEvent>,
    work: JoinHandle<Result<Ending, RunError>>,
}

impl Running {
    pub(super) const fn new(
        run: RunId,
        events: mpsc::UnboundedReceiver<RunEvent>,
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
        self.events.poll_recv(cx)
    }
}

/// Where the work sends its events. Nobody has to listen.
#[derive(Clone)]
pub(super) struct Listener {
    events: mpsc::UnboundedSender<RunEvent>,
    /// The calls that were handed on, from the root's, with the agents that they were handed to.
    below: Vec<(CallId, String)>,
}

impl Listener {
    pub(super) fn channel() -> (Self, mpsc::UnboundedReceiver<RunEvent>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let listener = Self {
            events: sender,
            below: Vec::new(),
        };
        (listener, receiver)
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
        // A client that went away changes nothing.
        let _ = self.events.send(event);
    }
}
