use std::{marker::PhantomData, sync::Arc, time::Duration};

use super::{Agent, PendingError, PendingSet};
use crate::{
    approval::{Decided, Decision, PendingCall, PendingKind},
    call::{Principal, RunId},
    run::{
        Attached, CancelError, CancelOutcome, DecideError, Ending, FinishReason, Input, RunError,
        Running, Runtime, StartError, Worker,
    },
    store::{Page, RunFilter, RunRecord, StoreError},
};

/// An agent that this process hosts: starts its runs, continues them, and takes decisions about
/// their calls.
pub struct Hosted<A> {
    runtime: Arc<Runtime>,
    agent: PhantomData<fn() -> A>,
}

impl<A> Clone for Hosted<A> {
    fn clone(&self) -> Self {
        Self {
            runtime: Arc::clone(&self.runtime),
            agent: PhantomData,
        }
    }
}

/// How working on a run of `A` ended.
#[non_exhaustive]
pub enum Outcome<A: Agent> {
    /// The run is over.
    Finished {
        /// The run.
        run: RunId,
        /// The model's last text.
        text: String,
        /// Why it is over.
        reason: FinishReason,
    },
    /// The run waits for people. It is a few rows in the database and can wait for months.
    Suspended(Suspended<A>),
}

/// What a suspended run waits for.
#[non_exhaustive]
pub struct Suspended<A: Agent> {
    /// The run.
    pub run: RunId,
    /// Calls that wait for a decision or an answer, with typed arguments.
    pub pending: Vec<A::Pending>,
    /// Calls of sub-agents that have no typed form in `pending`.
    pub delegated: Vec<PendingCall>,
    /// Calls of tools that were added [when the agent was built](super::AgentBuilder::tools), so
    /// that its declaration has no type for them.
    pub untyped: Vec<PendingCall>,
    /// Calls whose instance died while it executed them: a person says what happened.
    pub in_doubt: Vec<PendingCall>,
    /// Calls that do not fit the agent any more, as after a change of a tool; resuming the run
    /// voids them.
    pub unfit: Vec<PendingError>,
}

/// A run in a list.
#[non_exhaustive]
pub struct SuspendedRun<A: Agent> {
    /// The run as it is stored.
    pub record: RunRecord,
    /// What it waits for.
    pub waiting: Suspended<A>,
}

impl<A: Agent> Suspended<A> {
    /// Types what waits. `has` says whether the agent has the tool of a call that its declaration
    /// does not know.
    fn new(run: RunId, calls: Vec<PendingCall>, has: impl Fn(&PendingCall) -> bool) -> Self {
        let mut suspended = Self {
            run,
            pending: Vec::new(),
            delegated: Vec::new(),
            untyped: Vec::new(),
            in_doubt: Vec::new(),
            unfit: Vec::new(),
        };
        for call in calls {
            if call.kind == PendingKind::InDoubt {
                suspended.in_doubt.push(call);
                continue;
            }
            match A::Pending::from_call(call.clone()) {
                Ok(pending) => suspended.pending.push(pending),
                Err(_) if call.is_delegated() => suspended.delegated.push(call),
                Err(PendingError::UnknownTool { .. }) if has(&call) => suspended.untyped.push(call),
                Err(error) => suspended.unfit.push(error),
            }
        }
        suspended
    }
}

impl<A: Agent> Outcome<A> {
    /// An untyped ending, typed.
    pub fn of(ending: Ending) -> Self {
        match ending {
            Ending::Finished { run, text, reason } => Self::Finished { run, text, reason },
            // Whoever worked on the run had all tools: it voided the calls of those it had not.
            Ending::Suspended { run, pending } => {
                Self::Suspended(Suspended::new(run, pending, |_| true))
            }
        }
    }
}

impl<A: Agent> Hosted<A> {
    pub(super) const fn new(runtime: Arc<Runtime>) -> Self {
        Self {
            runtime,
            agent: PhantomData,
        }
    }

    /// The runtime behind it, untyped.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Starts a run and gives its events as they come.
    ///
    /// # Errors
    ///
    /// When the store fails: nothing was started then.
    pub async fn stream(&self, input: Input) -> Result<Running, StartError> {
        self.runtime.start(input).await
    }

    /// Starts a run and waits until it is over or waits for people.
    ///
    /// # Errors
    ///
    /// When the model or the store fails. A run that was started can be resumed.
    pub async fn generate(&self, input: Input) -> Result<Outcome<A>, GenerateError> {
        Ok(Outcome::of(self.stream(input).await?.ending().await?))
    }

    /// Continues a run, in any process and at any time, from its last durable record.
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, or the store fails.
    pub async fn resume(&self, run: &RunId) -> Result<Running, RunError> {
        self.runtime.resume(run).await
    }

    /// Attaches to the events of a run, whichever process works on it: those after a sequence
    /// number (0 for all), and what follows until the run is put down. Nothing is continued by
    /// it.
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, or the store fails.
    pub async fn attach(&self, run: &RunId, after: i64) -> Result<Attached, RunError> {
        self.runtime.attach(run, after).await
    }

    /// Continues a run and waits until it is over or waits for people again.
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, or the model or the store fails.
    pub async fn resume_and_wait(&self, run: &RunId) -> Result<Outcome<A>, RunError> {
        Ok(Outcome::of(self.resume(run).await?.ending().await?))
    }

    /// Cancels a run and everything below it, on behalf of its requester or of an operator.
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, the person may not cancel it, or the store fails.
    pub async fn cancel(&self, by: &Principal, run: &RunId) -> Result<CancelOutcome, CancelError> {
        self.runtime.cancel(by, run).await
    }

    /// Continues runs that were decided about, in whichever process, and runs whose instance died;
    /// ends calls whose time is over. Until the worker is dropped.
    pub fn worker(&self, every: Duration) -> Worker {
        self.runtime.worker(every)
    }

    /// Records a decision of an authenticated person about one call. It does not continue the
    /// run: [`resume`](Self::resume) does, here or in another process.
    ///
    /// # Errors
    ///
    /// When the decision is refused; nothing was changed and nothing consumed then.
    pub async fn decide(&self, by: &Principal, decision: Decision) -> Result<Decided, DecideError> {
        self.runtime.decide(by, decision).await
    }

    /// Records several decisions of one person, in order, and gives what became of each: one that
    /// is refused does not keep the others from being recorded.
    pub async fn decide_all(
        &self,
        by: &Principal,
        decisions: impl IntoIterator<Item = Decision>,
    ) -> Vec<Result<Decided, DecideError>> {
        let mut decided = Vec::new();
        for decision in decisions {
            decided.push(self.decide(by, decision).await);
        }
        decided
    }

    /// What waits in a run, with typed arguments.
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, or the store fails.
    pub async fn pending(&self, run: &RunId) -> Result<Suspended<A>, RunError> {
        self.runtime.check_owner(run).await?;
        let calls = self.runtime.store.pending(run).await;
        let mut calls = calls.map_err(|source| RunError::Store {
            run: run.clone(),
            source,
        })?;
        self.runtime.describe(0, &mut calls);
        Ok(self.typed(run.clone(), calls))
    }

    fn typed(&self, run: RunId, calls: Vec<PendingCall>) -> Suspended<A> {
        Suspended::new(run, calls, |call| self.runtime.tool_of(0, call).is_some())
    }

    /// Runs of this agent that wait for people; a page at a time, oldest first.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn suspended_runs(
        &self,
        filter: RunFilter,
        page: &Page,
    ) -> Result<Vec<SuspendedRun<A>>, StoreError> {
        let filter = RunFilter {
            agent: Some(self.runtime.agent.clone()),
            status: Some(crate::store::RunStatus::Suspended),
            ..filter
        };
        let found = self.runtime.store.runs(&filter, page).await?;
        Ok(found
            .into_iter()
            .map(|mut summary| {
                self.runtime.describe(0, &mut summary.pending);
                summary
            })
            .map(|summary| SuspendedRun {
                waiting: self.typed(summary.run.id.clone(), summary.pending),
                record: summary.run,
            })
            .collect())
    }
}

/// Why [`Hosted::generate`] ended without an outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The run was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The run was started and can be resumed.
    #[error(transparent)]
    Run(#[from] RunError),
}
