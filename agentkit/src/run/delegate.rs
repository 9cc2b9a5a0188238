//! Calls that are handed to sub-agents: each is a run of its own below the run of the call.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::task::{AbortHandle, JoinHandle};
use tracing::{Instrument as _, instrument::WithSubscriber as _};

use super::{
    Ending, FinishReason, Runtime,
    cancel::Stop,
    drive::{Failure, Held, Work},
    execute::Ran,
    lease::Heartbeat,
    trace,
};
use crate::{
    call::{CallEvent, CallState, Canonical, RunId, RunSecret},
    journal::{Event, content_digest},
    model::Message,
    store::{CallChange, CallRecord, NewRun, ParentCall, StoreError},
    tool::{Cancellation, Task},
};

impl Runtime {
    /// The runtime of the agent at the end of a path of names that starts with this agent's.
    pub(crate) fn at(self: &Arc<Self>, path: &[String]) -> Option<Arc<Self>> {
        let (first, below) = path.split_first()?;
        if *first != self.agent {
            return None;
        }
        below.iter().try_fold(Arc::clone(self), |runtime, name| {
            runtime.agents.get(name).cloned()
        })
    }
}

impl Work {
    /// Works on the run that a call was handed to, until it is over or waits for people.
    ///
    /// Boxed, since a run below may hand on its own calls in the same way, and worked on in a task
    /// of its own, so that the stack does not grow with the depth of delegation.
    pub(super) fn run_child<'a>(
        &'a self,
        call: &'a CallRecord,
    ) -> BoxFuture<'a, Result<Ran, Failure>> {
        Box::pin(async move {
            let Some(agent) = self.runtime.agents.get(&call.tool) else {
                let why = format!("the agent `{}` is not there any more", call.tool);
                self.end_delegation(call, CallEvent::Fail, why).await?;
                return Ok(Ran::Ended);
            };
            let ending = match self.open_child(agent, call).await? {
                Opened::Over(ending) => ending,
                Opened::Work(mut work, heartbeat) => {
                    let span = trace::invoke_agent(&work.runtime, &work.run, work.lease.epoch);
                    #[cfg(feature = "otel")]
                    trace::link_to_suspension(&span, &work.runtime, &work.lease).await;
                    let below = Below::start(async move {
                        let result = work.drive().instrument(span.clone()).await;
                        trace::put_down(&span, &result);
                        if let Err(failure) = &result {
                            work.interrupt(failure).await;
                        }
                        drop(heartbeat);
                        result
                    });
                    below.ending().await?
                }
            };
            self.conclude(call, ending).await
        })
    }

    /// Ends the run that a call was handed to. `false` where a call of it is in doubt, so that
    /// it waits for a person first.
    pub(super) fn wind_up_child<'a>(
        &'a self,
        call: &'a CallRecord,
        stop: Stop,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            let Some(agent) = self.runtime.agents.get(&call.tool) else {
                return Ok(true);
            };
            if self.runtime.store.child_of(&call.id).await?.is_none() {
                return Ok(true);
            }
            let Opened::Work(mut work, heartbeat) = self.open_child(agent, call).await? else {
                return Ok(true);
            };
            work.recover().await?;
            let below = Below::start(async move {
                let result = work.wind_up(stop).await;
                if let Err(failure) = &result {
                    work.interrupt(failure).await;
                }
                drop(heartbeat);
                result
            });
            Ok(matches!(below.ending().await?, Ending::Finished { .. }))
        })
    }

    /// Takes up the run below a call, which is started where that has not happened yet.
    async fn open_child(&self, agent: &Arc<Runtime>, call: &CallRecord) -> Result<Opened, Failure> {
        let (lease, record) = match self.runtime.store.child_of(&call.id).await? {
            Some(child) if child.status.is_final() => {
                return Ok(Opened::Over(agent.over(child).await?));
            }
            Some(child) => agent.wait_for_lease(&child.id).await?,
            None => self.start_child(agent, call).await?,
        };
        if record.status.is_final() {
            return Ok(Opened::Over(agent.over(record).await?));
        }
        let lease = Arc::new(lease);
        // Its own: when the lease on the run below is gone, as after that run was put down, the
        // run above goes on.
        let cancellation = Cancellation::new();
        let forward = Forward::start(self.cancellation.clone(), cancellation.clone());
        let heartbeat = Heartbeat::start(
            agent.store.clone(),
            Arc::clone(&lease),
            agent.settings.lease,
            cancellation.clone(),
        );
        let held = Held {
            lease,
            record,
            // In memory, not as it is stored: the parent's predicate is still there.
            options: agent.defaults.below(&self.options),
            listener: self.listener.below(call.id.clone(), call.tool.clone()),
            cancellation,
            deadline: None,
        };
        let work = agent.open(held).await?;
        Ok(Opened::Work(Box::new(work), (heartbeat, forward)))
    }

    async fn start_child(
        &self,
        agent: &Arc<Runtime>,
        call: &CallRecord,
    ) -> Result<(crate::store::Lease, crate::store::RunRecord), Failure> {
        agent.record_policy().await?;
        let corrupt =
            |error: serde_json::Error| StoreError::corrupt("arguments", call.id.as_str(), error);
        let task: Task = call
            .arguments
            .as_ref()
            .ok_or_else(|| StoreError::corrupt("arguments", call.id.as_str(), "there are none"))?
            .decode()
            .map_err(corrupt)?;
        let id = RunId::new();
        let secret = RunSecret::random().map_err(StoreError::Randomness)?;
        let message = serde_json::to_string(&Message::user(task.task)).map_err(corrupt)?;
        let mut path = self.run.path.clone();
        path.push(agent.agent.clone());
        let events = vec![agent.started(&self.run.requester, &secret, &message)];
        let new = NewRun {
            id: id.clone(),
            root: self.run.root.clone(),
            parent: Some(ParentCall::new(self.run.id.clone(), call.id.clone())),
            path,
            thread: None,
            agent: agent.agent.clone(),
            definition: agent.definition,
            requester: self.run.requester.clone(),
            secret,
            options: agent
                .defaults
                .below(&self.options)
                .to_stored()
                .map_err(corrupt)?,
            input: message,
            events,
        };
        let lease = agent
            .store
            .start_run(&new, &agent.instance, agent.settings.lease)
            .await?;
        Ok((lease, agent.store.run(&id).await?))
    }

    /// What the run below has come to, for the call.
    async fn conclude(&self, call: &CallRecord, ending: Ending) -> Result<Ran, Failure> {
        let (event, outcome) = match ending {
            Ending::Suspended { .. } => return Ok(Ran::Parked),
            Ending::Finished {
                reason: FinishReason::Cancelled,
                ..
            } => {
                // A run below is cancelled with its root only, and learnt of it first.
                self.cancellation.cancel();
                return Ok(Ran::Parked);
            }
            Ending::Finished {
                text,
                reason: FinishReason::Answered,
                ..
            } => {
                let text = Canonical::of(&text)
                    .map_err(|error| StoreError::corrupt("answer", call.id.as_str(), error))?;
                (CallEvent::Succeed, text.to_string())
            }
            Ending::Finished { text, reason, .. } => {
                let why = format!(
                    "the agent `{}` did not come to an end ({}){}{text}",
                    call.tool,
                    reason.as_str(),
                    if text.is_empty() { "" } else { ": " }
                );
                (CallEvent::Fail, why)
            }
        };
        self.end_delegation(call, event, outcome).await?;
        Ok(Ran::Ended)
    }

    async fn end_delegation(
        &self,
        call: &CallRecord,
        event: CallEvent,
        outcome: String,
    ) -> Result<(), Failure> {
        let facts = self
            .runtime
            .store
            .change_call(&self.run.id, Some(&self.lease), &call.id, |facts| {
                if facts.call.state != CallState::Delegated {
                    return Ok(None);
                }
                let mut change = CallChange::new(event);
                change.events.push(Event::CallEnded {
                    call: facts.call.id.clone(),
                    state: facts.call.state.after(event).unwrap_or(facts.call.state),
                    content: content_digest(&facts.run.secret, outcome.as_bytes()),
                });
                change.outcome = Some(outcome.clone());
                Ok::<_, StoreError>(Some(change))
            })
            .await?;
        Ok(self.announce(&facts.call).await?)
    }
}

enum Opened {
    /// The run below is over.
    Over(Ending),
    /// It can be worked on while the heartbeat lasts.
    Work(Box<Work>, (Heartbeat, Forward)),
}

/// The work on a run below, in a task of its own; cut off when it is dropped.
struct Below(JoinHandle<Result<Ending, Failure>>);

impl Below {
    fn start(work: impl Future<Output = Result<Ending, Failure>> + Send + 'static) -> Self {
        // What listens in this task listens in that one.
        Self(tokio::spawn(work.with_current_subscriber()))
    }

    async fn ending(mut self) -> Result<Ending, Failure> {
        // A task that panicked is as an instance that died.
        (&mut self.0).await.unwrap_or(Err(Failure::Stopped))
    }
}

impl Drop for Below {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks a run below to stop when the run above is, until it is dropped.
struct Forward(AbortHandle);

impl Forward {
    fn start(above: Cancellation, below: Cancellation) -> Self {
        let forward = async move {
            above.cancelled().await;
            below.cancel();
        };
        Self(tokio::spawn(forward).abort_handle())
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.0.abort();
    }
}
