//! Cancelling a run: tools that execute are asked to stop, what they report is recorded, and then
//! the run ends, with all runs below it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Ending, FinishReason, RunError, RunEvent, Runtime, drive::Failure, drive::Work};
use crate::{
    call::{CallEvent, CallState, Principal, RunId},
    journal::Event,
    store::{CallChange, RunEnd, RunStatus, StoreError},
    tool::Cancellation,
};

/// Why a run is to stop before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Somebody cancelled it.
    Cancelled,
    /// It was worked on for as long as it may be.
    TimeUp,
}

/// What became of a request to cancel a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelOutcome {
    /// The run is over: cancelled now, or before.
    Cancelled,
    /// An instance works on it: its tools are asked to stop, and it ends as cancelled once they
    /// have.
    Stopping,
    /// A call is in doubt: the run ends as cancelled once a person has said what happened and it
    /// is resumed.
    InDoubt,
    /// The run had finished before.
    Finished,
}

/// Why a run is not cancelled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CancelError {
    /// There is no such run of this agent.
    #[error("there is no run `{run}`")]
    UnknownRun {
        /// The run that was named.
        run: RunId,
    },
    /// The person may not cancel it.
    #[error(
        "`{by}` may not cancel run `{run}`: only its requester and operators (`operator_role`) may"
    )]
    NotAllowed {
        /// The run.
        run: RunId,
        /// Who tried.
        by: String,
    },
    /// The store or the work on the run failed; it is marked as to be cancelled if it was reached.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl CancelError {
    /// The HTTP status that tells a client the same.
    pub const fn http_status(&self) -> u16 {
        match self {
            Self::UnknownRun { .. } => 404,
            Self::NotAllowed { .. } => 403,
            Self::Run(_) => 503,
        }
    }
}

/// The runs that this process works on, with what asks their tools to stop.
#[derive(Default)]
pub(crate) struct Active(Mutex<HashMap<RunId, Cancellation>>);

impl Active {
    pub(super) fn enter(self: &Arc<Self>, run: &RunId, cancellation: Cancellation) -> Entered {
        let mut active = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        active.insert(run.clone(), cancellation);
        Entered(Arc::clone(self), run.clone())
    }

    fn stop(&self, run: &RunId) {
        let active = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancellation) = active.get(run) {
            cancellation.cancel();
        }
    }
}

/// Takes a run off the list when the work on it ends.
pub(super) struct Entered(Arc<Active>, RunId);

impl Drop for Entered {
    fn drop(&mut self) {
        let mut active = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        active.remove(&self.1);
    }
}

impl Runtime {
    /// Cancels a run and everything below it, on behalf of its requester or of an operator.
    /// Calls that wait are cancelled and can no longer be decided; tools that execute are asked
    /// to stop, and what they report is recorded before the run ends.
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, the person may not cancel it, or the store fails.
    pub async fn cancel(
        self: &Arc<Self>,
        by: &Principal,
        run: &RunId,
    ) -> Result<CancelOutcome, CancelError> {
        let unknown = || CancelError::UnknownRun { run: run.clone() };
        let record = match self.check_owner(run).await {
            Ok(record) if record.requester.tenant == by.tenant => record,
            Ok(_) | Err(RunError::UnknownRun { .. }) => return Err(unknown()),
            Err(error) => return Err(error.into()),
        };
        let run = &record.id;
        if by.id != record.requester.id && !self.is_operator(by).await {
            return Err(CancelError::NotAllowed {
                run: run.clone(),
                by: by.id.clone(),
            });
        }
        let event = Event::CancelRequested {
            by: by.id.clone(),
            authenticated_by: by.authenticated_by.clone(),
        };
        let failed = |source| RunError::Store {
            run: run.clone(),
            source,
        };
        let record = self
            .store
            .request_cancel(run, &event)
            .await
            .map_err(failed)?;
        match record.status {
            RunStatus::Cancelled => return Ok(CancelOutcome::Cancelled),
            RunStatus::Finished => return Ok(CancelOutcome::Finished),
            _ => self.active.stop(run),
        }
        // Whoever works on the run ends it; where nobody does, this instance takes it up to do so.
        let taken = self
            .store
            .acquire(run, &self.instance, self.settings.lease)
            .await;
        let held = match taken {
            Ok(held) => held,
            Err(StoreError::HeldElsewhere { .. }) => return Ok(CancelOutcome::Stopping),
            Err(error) => return Err(failed(error).into()),
        };
        match self.take_up(run, held).ending().await? {
            Ending::Suspended { .. } => Ok(CancelOutcome::InDoubt),
            Ending::Finished {
                reason: FinishReason::Cancelled,
                ..
            } => Ok(CancelOutcome::Cancelled),
            Ending::Finished { .. } => Ok(CancelOutcome::Finished),
        }
    }

    /// Whether a person has the operators' role now. A directory that does not know the person
    /// or cannot be asked means no.
    async fn is_operator(&self, person: &Principal) -> bool {
        use crate::approval::Standing;
        let Some(role) = &self.operator_role else {
            return false;
        };
        match self.directory.standing(person).await {
            Ok(Standing::Known { roles }) => roles.contains(role),
            Ok(Standing::AsClaimed) => person.roles.contains(role),
            Ok(Standing::Unknown) | Err(_) => false,
        }
    }
}

impl Work {
    /// Whether the run is to stop, and why. Fails where only this instance is to stop, as after
    /// its lease was lost.
    pub(super) async fn stop(&mut self) -> Result<Option<Stop>, Failure> {
        if self.run.cancelled.is_none() && self.cancellation.is_cancelled() {
            let record = self.runtime.store.run(&self.run.id).await?;
            self.run.cancelled = record.cancelled;
        }
        if self.run.cancelled.is_some() {
            return Ok(Some(Stop::Cancelled));
        }
        if !self.cancellation.is_cancelled() {
            return Ok(None);
        }
        match self.deadline {
            Some(deadline) if deadline <= tokio::time::Instant::now() => Ok(Some(Stop::TimeUp)),
            _ => Err(Failure::Stopped),
        }
    }

    /// Ends the run early: what has not run is cancelled, and what is in doubt waits for a person
    /// before the run ends.
    pub(super) async fn wind_up(&mut self, stop: Stop) -> Result<Ending, Failure> {
        let reason = match stop {
            Stop::Cancelled => FinishReason::Cancelled,
            Stop::TimeUp => FinishReason::TimeLimit,
        };
        loop {
            let open: Vec<_> = self
                .calls
                .iter()
                .filter(|call| !call.state.is_final())
                .cloned()
                .collect();
            for call in open {
                if call.state == CallState::Delegated && !self.wind_up_child(&call, stop).await? {
                    continue;
                }
                let facts = self
                    .runtime
                    .store
                    .change_call(&self.run.id, Some(&self.lease), &call.id, |facts| {
                        let state = facts.call.state;
                        let change = state.after(CallEvent::Cancel).is_ok().then(|| {
                            let mut change = CallChange::new(CallEvent::Cancel);
                            change.outcome = Some(match stop {
                                Stop::Cancelled => {
                                    "cancelled: the run was cancelled before this ran".to_owned()
                                }
                                Stop::TimeUp => "cancelled: the time of the run was over before \
                                                 this ran"
                                    .to_owned(),
                            });
                            change.events.push(Event::ReleaseRefused {
                                call: facts.call.id.clone(),
                                why: reason.as_str().to_owned(),
                                state: CallState::Cancelled,
                            });
                            change
                        });
                        Ok::<_, StoreError>(change)
                    })
                    .await?;
                self.announce(&facts.call).await?;
            }
            self.reload().await?;
            if self.calls.iter().all(|call| call.state.is_final()) {
                break;
            }
            if let Some(pending) = self.suspend().await? {
                return Ok(Ending::Suspended {
                    run: self.run.id.clone(),
                    pending,
                });
            }
        }
        match stop {
            Stop::TimeUp => self.finish(None, String::new(), reason).await,
            Stop::Cancelled => {
                let ended = Event::RunEnded {
                    status: RunStatus::Cancelled.as_str().to_owned(),
                };
                let last = RunEvent::Finished {
                    text: String::new(),
                    reason,
                };
                self.put_down(&RunEnd::Cancelled, &[ended], vec![last])
                    .await?;
                Ok(Ending::Finished {
                    run: self.run.id.clone(),
                    text: String::new(),
                    reason,
                })
            }
        }
    }
}
