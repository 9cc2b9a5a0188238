//! Working on a run: one loop that continues from whatever the rows say.

use std::{collections::BTreeSet, sync::Arc};

use agentkit_policy::User;
use futures_util::{StreamExt as _, stream};
use tracing::Instrument as _;

use super::{
    Ending, FinishReason, RunEvent, RunOptions, Runtime, bind::Asking, execute::Ran,
    stream::Listener, trace,
};
use crate::{
    approval::PendingCall,
    call::{CallId, CallState, Canonical},
    gate::{ProposedCall, RunDemand},
    journal::Event,
    memory::history,
    model::{self, Message, ModelError, ModelEvent, ModelRequest, Turn, TurnCollector},
    store::{
        CallRecord, Lease, Past, RunEnd, RunRecord, RunStatus, StoreError, StoredMessage, Usage,
    },
    tool::Cancellation,
};

/// What ends the work early.
pub(super) enum Failure {
    Store(StoreError),
    Model(ModelError),
    /// This instance is to stop, and another may go on.
    Stopped,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

/// The work of one instance on one run, while it holds the lease.
pub(super) struct Work {
    pub(super) runtime: Arc<Runtime>,
    pub(super) lease: Arc<Lease>,
    pub(super) run: RunRecord,
    pub(super) options: RunOptions,
    pub(super) requester: User,
    /// What was said on the thread before.
    pub(super) earlier: Vec<Message>,
    pub(super) messages: Vec<StoredMessage>,
    pub(super) calls: Vec<CallRecord>,
    pub(super) listener: Listener,
    pub(super) cancellation: Cancellation,
    /// When the time of the run is over.
    pub(super) deadline: Option<tokio::time::Instant>,
}

/// What an instance holds of a run before it works on it.
pub(super) struct Held {
    pub(super) lease: Arc<Lease>,
    pub(super) record: RunRecord,
    pub(super) options: RunOptions,
    pub(super) listener: Listener,
    pub(super) cancellation: Cancellation,
    pub(super) deadline: Option<tokio::time::Instant>,
}

impl Work {
    /// The run before the gate.
    pub(super) fn asking<'a>(
        &'a self,
        run: &'a RunRecord,
        demand: RunDemand,
        past: &'a Past,
    ) -> Asking<'a> {
        Asking {
            run,
            requester: &self.requester,
            demand,
            past,
        }
    }

    /// What the run itself demands for a call, or else its agent's declaration.
    pub(super) async fn demand(&self, tool: &str, arguments: &Canonical) -> RunDemand {
        let Ok(value) = arguments.to_value() else {
            return RunDemand::Unavailable;
        };
        let call = || ProposedCall {
            agent: self.runtime.agent.clone(),
            tool: tool.to_owned(),
            arguments: value.clone(),
            requester: self.run.requester.clone(),
            context: self.options.context.visible(),
        };
        let own = self.demand_in_time(self.options.require_approval.demand(&call));
        match own.await {
            RunDemand::None => {
                let declared = self.runtime.defaults.require_approval.demand(&call);
                self.demand_in_time(declared).await
            }
            demand => demand,
        }
    }

    /// A demand; one that cannot be told in time means approval.
    async fn demand_in_time(&self, demand: impl Future<Output = RunDemand>) -> RunDemand {
        tokio::time::timeout(self.runtime.settings.patience, demand)
            .await
            .unwrap_or(RunDemand::Unavailable)
    }

    pub(super) async fn drive(&mut self) -> Result<Ending, Failure> {
        self.tell_ended().await?;
        self.recover().await?;
        self.void_stale().await?;
        loop {
            if let Some(stop) = self.stop().await? {
                return self.wind_up(stop).await;
            }
            match self.finish_calls().await {
                // A run below was told to stop, and so is this one: the loop's head says why.
                Err(Failure::Stopped) if self.cancellation.is_cancelled() => continue,
                other => other?,
            }
            if self.cancellation.is_cancelled() {
                continue;
            }
            if self.calls.iter().any(|call| !call.state.is_final()) {
                if let Some(pending) = self.suspend().await? {
                    return Ok(Ending::Suspended {
                        run: self.run.id.clone(),
                        pending,
                    });
                }
                // A decision arrived in the meantime.
                continue;
            }
            if let Some(reason) = self.over_budget().await? {
                return self.finish(None, String::new(), reason).await;
            }
            let Some(turn) = self.ask_model().await? else {
                continue;
            };
            let form = self.options.output.as_ref();
            let fits = form.is_none_or(|form| form.read(&turn.text).is_ok());
            if turn.tool_calls.is_empty() && fits {
                return self.answer(turn).await;
            }
            // An answer without calls that has not the form that it must have is a step as any
            // other: the model is told what is wrong with it and asked again.
            self.propose(turn).await?;
        }
    }

    /// Which budget of the run is used up.
    async fn over_budget(&self) -> Result<Option<FinishReason>, StoreError> {
        if self.run.step >= self.options.max_steps {
            return Ok(Some(FinishReason::StepLimit));
        }
        let Some(most) = self.options.max_tokens else {
            return Ok(None);
        };
        let used = self.runtime.store.tokens(&self.run.root).await?;
        Ok((used >= most).then_some(FinishReason::TokenLimit))
    }

    /// Runs what may run, until only calls are left that wait for people, or none.
    async fn finish_calls(&mut self) -> Result<(), Failure> {
        // Delegated calls whose run below waits for people.
        let mut parked = BTreeSet::new();
        loop {
            let done = self.calls.iter().all(|call| call.state.is_final());
            if done || self.cancellation.is_cancelled() {
                return Ok(());
            }
            self.expire_overdue().await?;
            let runnable: Vec<_> = self
                .calls
                .iter()
                .filter(|call| match call.state {
                    CallState::Ready | CallState::Approved => true,
                    CallState::Delegated => !parked.contains(&call.id),
                    _ => false,
                })
                .map(|call| call.id.clone())
                .collect();
            if runnable.is_empty() {
                return Ok(());
            }
            let calls: Vec<_> = runnable
                .iter()
                .map(|call| async { (call.clone(), self.run_call(call).await) })
                .collect();
            let most = self.runtime.settings.concurrency.max(1);
            let mut running = stream::iter(calls).buffer_unordered(most);
            let mut failure = None;
            while let Some((call, result)) = running.next().await {
                match result {
                    Ok(Ran::Ended) => {}
                    Ok(Ran::Parked) => {
                        parked.insert(call);
                    }
                    // The others go on: their effects are recorded whatever happened to one.
                    Err(error) => {
                        failure.get_or_insert(error);
                    }
                }
            }
            drop(running);
            if let Some(failure) = failure {
                return Err(failure);
            }
            self.reload().await?;
        }
    }

    pub(super) async fn reload(&mut self) -> Result<(), StoreError> {
        self.calls = self.runtime.store.calls(&self.run.id).await?;
        self.tell_ended().await
    }

    /// Tells of calls that somebody else ended, by a decision or because their time was over.
    async fn tell_ended(&mut self) -> Result<(), StoreError> {
        let untold: Vec<_> = self.calls.iter_mut().filter(|call| call.untold).collect();
        if untold.is_empty() {
            return Ok(());
        }
        let mut told = Vec::with_capacity(untold.len());
        for call in untold {
            call.untold = false;
            told.push(call.clone());
        }
        for call in &told {
            self.announce(call).await?;
        }
        let told: Vec<_> = told.into_iter().map(|call| call.id).collect();
        self.runtime.store.told(&self.lease, &told).await
    }

    /// Puts the run down to wait for people. Nothing where a decision arrived meanwhile.
    pub(super) async fn suspend(&mut self) -> Result<Option<Vec<PendingCall>>, StoreError> {
        let store = &self.runtime.store;
        let mut waiting = store.pending(&self.run.id).await?;
        self.runtime.describe(self.place(), &mut waiting);
        let event = Event::RunSuspended {
            pending: u32::try_from(waiting.len()).unwrap_or(u32::MAX),
            span: trace::name_of_current(),
        };
        let last = RunEvent::Suspended {
            pending: waiting.iter().map(|call| call.call.clone()).collect(),
        };
        if self
            .put_down(&RunEnd::Suspended, &[event], vec![last])
            .await?
        {
            Ok(Some(waiting))
        } else {
            self.reload().await?;
            Ok(None)
        }
    }

    async fn answer(&mut self, turn: Turn) -> Result<Ending, Failure> {
        let step = self.run.step.saturating_add(1);
        let message = Message::assistant(turn.text.clone(), Vec::new());
        let body = serde_json::to_string(&message)
            .map_err(|error| StoreError::corrupt("message", self.run.id.as_str(), error))?;
        let answered = self.model_answered(&turn, step, &body);
        let ending = self
            .finish(
                Some((body, answered, turn.usage)),
                turn.text,
                FinishReason::Answered,
            )
            .await?;
        Ok(ending)
    }

    pub(super) async fn finish(
        &mut self,
        message: Option<(String, Event, model::Usage)>,
        text: String,
        reason: FinishReason,
    ) -> Result<Ending, Failure> {
        let mut last = Vec::new();
        let (message, answered, usage) = match message {
            Some((message, answered, usage)) => {
                let step = self.run.step.saturating_add(1);
                last.push(RunEvent::StepFinished { step, usage });
                (Some(message), Some(answered), used(&usage))
            }
            None => (None, None, Usage::default()),
        };
        let ended = Event::RunEnded {
            status: RunStatus::Finished.as_str().to_owned(),
        };
        let events: Vec<_> = answered.into_iter().chain([ended]).collect();
        let end = RunEnd::Finished {
            message,
            usage,
            ending: reason.as_str(),
        };
        last.push(RunEvent::Finished {
            text: text.clone(),
            reason,
        });
        self.put_down(&end, &events, last).await?;
        Ok(Ending::Finished {
            run: self.run.id.clone(),
            text,
            reason,
        })
    }

    /// Asks the model. Nothing where the run is told to stop meanwhile: nothing of the turn counts
    /// then.
    async fn ask_model(&mut self) -> Result<Option<Turn>, Failure> {
        let step = self.run.step.saturating_add(1);
        self.listener.send(RunEvent::StepStarted { step });
        let mut messages = self.earlier.clone();
        messages.extend(history(&self.messages, &self.calls)?);
        let mut instructions = self.runtime.instructions.clone();
        if let Some(form) = &self.options.output {
            messages = form.with_corrections(messages);
            instructions = format!("{instructions}\n\n{}", form.instructions());
        }
        let request = ModelRequest::new(messages)
            .instructions(instructions)
            .tools(self.runtime.offers());
        let request = self.runtime.defaults.of_model(request);
        self.before_model_call(&request).await;
        let span = trace::chat(&self.runtime);
        let turn = self.read_turn(&request).instrument(span.clone()).await;
        let Some(turn) = turn.inspect_err(|failure| trace::failed(&span, failure))? else {
            return Ok(None);
        };
        trace::answered(&span, &turn);
        drop(span);
        self.after_model_call(&turn).await;
        Ok(Some(turn))
    }

    async fn read_turn(&self, request: &ModelRequest) -> Result<Option<Turn>, Failure> {
        let mut stream = tokio::select! {
            stream = self.runtime.model.stream(request) => stream?,
            () = self.cancellation.cancelled() => return Ok(None),
        };
        let mut turn = TurnCollector::new();
        loop {
            let event = tokio::select! {
                event = stream.next() => event,
                () = self.cancellation.cancelled() => return Ok(None),
            };
            let Some(event) = event else { break };
            let event = event?;
            turn.push(&event)?;
            if let Some(event) = shown(event) {
                self.listener.send(event);
            }
        }
        Ok(Some(turn.finish()?))
    }

    pub(super) fn remember(&mut self, step: u32, body: String) {
        self.messages.push(StoredMessage {
            sequence: step,
            step,
            body,
        });
    }

    /// Tells the listener about a call that waits, or that ended without running.
    pub(super) async fn announce(&self, call: &CallRecord) -> Result<(), StoreError> {
        if call.state.needs_person() {
            if let Some(pending) = self.pending(&call.id).await? {
                self.listener.send(RunEvent::Pending(Box::new(pending)));
            }
        } else if call.state.is_final() {
            self.listener.send(RunEvent::ToolEnded {
                call: call.id.clone(),
                tool: call.tool.clone(),
                state: call.state,
                outcome: call.outcome.clone().unwrap_or_default(),
            });
        }
        Ok(())
    }

    async fn pending(&self, call: &CallId) -> Result<Option<PendingCall>, StoreError> {
        let mut pending = self.runtime.store.pending(&self.run.id).await?;
        pending.retain(|pending| pending.call == *call);
        self.runtime.describe(self.place(), &mut pending);
        Ok(pending.pop())
    }

    /// The place of the run's agent in the path from the root's.
    fn place(&self) -> usize {
        self.run.path.len().saturating_sub(1)
    }

    /// Puts the run down, and tells of it as the last event.
    pub(super) async fn put_down(
        &self,
        end: &RunEnd,
        events: &[Event],
        last: Vec<RunEvent>,
    ) -> Result<bool, StoreError> {
        let store = &self.runtime.store;
        self.listener
            .put_down(store, &self.lease, end, events, last)
            .await
    }

    /// Puts the run down after a failure, so that it can be resumed at once. Where that fails
    /// too, the lease ends by itself.
    pub(super) async fn interrupt(&self, failure: &Failure) {
        let (error, events) = match failure {
            Failure::Store(StoreError::LeaseLost { .. }) => return,
            Failure::Stopped => ("the work was stopped".to_owned(), Vec::new()),
            Failure::Store(error) => (error.to_string(), Vec::new()),
            Failure::Model(error) => {
                let step = self.run.step.saturating_add(1);
                (
                    error.to_string(),
                    vec![Event::ModelFailed {
                        step,
                        error: error.to_string(),
                    }],
                )
            }
        };
        let last = RunEvent::Failed {
            error: error.clone(),
        };
        let end = RunEnd::Interrupted { error };
        if let Err(error) = self.put_down(&end, &events, vec![last]).await {
            tracing::warn!(run = %self.run.id, %error, "putting a run down");
        }
    }
}

/// What an answer used, as it is counted.
pub(super) const fn used(usage: &model::Usage) -> Usage {
    Usage {
        input: usage.input_tokens,
        output: usage.output_tokens,
    }
}

fn shown(event: ModelEvent) -> Option<RunEvent> {
    Some(match event {
        ModelEvent::TextDelta { text } => RunEvent::TextDelta { text },
        ModelEvent::ReasoningDelta { text } => RunEvent::ReasoningDelta { text },
        ModelEvent::ToolCallStarted { index, tool, .. } => {
            RunEvent::ToolInputStarted { index, tool }
        }
        ModelEvent::ToolCallDelta { index, json } => RunEvent::ToolInputDelta { index, json },
        _ => return None,
    })
}
