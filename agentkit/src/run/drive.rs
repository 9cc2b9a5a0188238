//! Working on a run: one loop that continues from whatever the rows say.

use std::{collections::BTreeSet, sync::Arc};

use agentkit_policy::User;
use futures_util::{StreamExt as _, stream};

use super::{
    Ending, FinishReason, Input, RunError, RunEvent, RunOptions, Running, Runtime, StartError,
    bind::Asking, execute::Ran, lease::Heartbeat, stream::Listener,
};
use crate::{
    approval::PendingCall,
    call::{CallId, CallState, Canonical, Principal, RunId, RunSecret},
    gate::{ProposedCall, RunDemand},
    journal::{Event, content_digest},
    memory::{Thread, ThreadOptions, history, thread_history},
    model::{self, Message, ModelError, ModelEvent, ModelRequest, Turn, TurnCollector},
    store::{
        CallRecord, Lease, NewRun, RunEnd, RunRecord, RunStatus, StoreError, StoredMessage,
        ThreadPlace, Usage,
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

/// How the work on a run begins.
enum Beginning {
    /// The run was started just now, with these options.
    Started(Lease, RunOptions),
    /// Its lease was taken just now.
    Taken(Lease, Box<RunRecord>),
    /// Its lease has to be waited for.
    Waiting,
}

impl Runtime {
    /// Starts a run and works on it.
    ///
    /// # Errors
    ///
    /// When the store fails: nothing was started then.
    ///
    /// On a thread that answers questions, a message that answers one continues the run that
    /// asked it instead: its id is the result's.
    pub async fn start(self: &Arc<Self>, mut input: Input) -> Result<Running, StartError> {
        self.record_policy().await?;
        if let Some(thread) = input.thread.take() {
            if thread.answers_questions
                && let Some(answered) = self.answer_from(&input, &thread).await?
            {
                return Ok(self.spawn(answered, Beginning::Waiting));
            }
            input.options.thread = Some(self.thread_options(&input.requester, thread).await?);
        }
        let thread = input.options.thread.as_ref().map(|thread| ThreadPlace {
            id: thread.id.clone(),
            owner: thread.owner.clone(),
            read_only: thread.read_only,
        });
        let id = RunId::new();
        let secret = RunSecret::random().map_err(StoreError::Randomness)?;
        let message = serde_json::to_string(&Message::user(input.text))
            .map_err(|error| StoreError::corrupt("message", id.as_str(), error))?;
        let started = self.started(&input.requester, &secret, &message);
        let new = NewRun {
            id: id.clone(),
            root: id.clone(),
            parent: None,
            path: vec![self.agent.clone()],
            thread,
            agent: self.agent.clone(),
            definition: self.definition,
            requester: input.requester,
            secret,
            options: input.options.to_stored().map_err(StartError::Options)?,
            input: message,
            events: vec![started],
        };
        let started = self
            .store
            .start_run(new, &self.instance, self.settings.lease)
            .await;
        let lease = match (started, &input.options.thread) {
            (Err(StoreError::ForeignThread { thread }), Some(options)) => {
                let owner = options.owner.clone();
                return Err(StartError::ForeignThread { thread, owner });
            }
            (started, _) => started?,
        };
        Ok(self.spawn(id, Beginning::Started(lease, input.options)))
    }

    /// The first event of a run.
    pub(super) fn started(&self, by: &Principal, secret: &RunSecret, message: &str) -> Event {
        let policy = self.policy();
        Event::RunStarted {
            agent: self.agent.clone(),
            definition: self.definition,
            requester: by.id.clone(),
            authenticated_by: by.authenticated_by.clone(),
            policy: crate::call::Digest::from_bytes(policy.digest()),
            built_in_policy: policy.is_built_in(),
            input: content_digest(secret, message.as_bytes()),
        }
    }

    /// Works on a run whose lease was taken.
    pub(super) fn take_up(self: &Arc<Self>, run: &RunId, held: (Lease, RunRecord)) -> Running {
        self.spawn(run.clone(), Beginning::Taken(held.0, Box::new(held.1)))
    }

    /// Continues a run from its last durable record, wherever it was left. A run below another
    /// one is continued from the root. Where another instance
    /// works on it, the work begins when that one is done or gone.
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, or the store fails.
    pub async fn resume(self: &Arc<Self>, run: &RunId) -> Result<Running, RunError> {
        let record = self.check_owner(run).await?;
        Ok(self.spawn(record.id, Beginning::Waiting))
    }

    /// The root of a run, if it is this agent's.
    pub(crate) async fn check_owner(&self, run: &RunId) -> Result<RunRecord, RunError> {
        let unknown = || RunError::UnknownRun {
            agent: self.agent.clone(),
            run: run.clone(),
        };
        let found = match self.store.run(run).await {
            Ok(record) if record.parent.is_some() => self.store.run(&record.root).await,
            other => other,
        };
        match found {
            Ok(record) if record.agent == self.agent => Ok(record),
            Ok(_) | Err(StoreError::UnknownRun { .. }) => Err(unknown()),
            Err(source) => Err(RunError::Store {
                run: run.clone(),
                source,
            }),
        }
    }

    /// Works on a run in a task of its own: a client that goes away changes nothing.
    fn spawn(self: &Arc<Self>, run: RunId, beginning: Beginning) -> Running {
        let (listener, events) = Listener::channel();
        let (runtime, id) = (Arc::clone(self), run.clone());
        let work = tokio::spawn(async move {
            runtime
                .work(&id, beginning, listener)
                .await
                .map_err(|failure| match failure {
                    Failure::Store(source) => RunError::Store { run: id, source },
                    Failure::Model(source) => RunError::Model { run: id, source },
                    Failure::Stopped => RunError::CutOff { run: id },
                })
        });
        Running::new(run, events, work)
    }

    async fn work(
        self: Arc<Self>,
        run: &RunId,
        beginning: Beginning,
        listener: Listener,
    ) -> Result<Ending, Failure> {
        let stored = |record: &RunRecord| {
            RunOptions::from_stored(&record.options)
                .map_err(|error| StoreError::corrupt("options", run.as_str(), error))
        };
        let (lease, record, options) = match beginning {
            Beginning::Started(lease, options) => (lease, self.store.run(run).await?, options),
            Beginning::Taken(lease, record) => {
                let options = stored(&record)?;
                (lease, *record, options)
            }
            Beginning::Waiting => {
                let record = self.store.run(run).await?;
                if record.status.is_final() {
                    return self.over(record).await;
                }
                let (lease, record) = self.wait_for_lease(run).await?;
                let options = stored(&record)?;
                (lease, record, options)
            }
        };
        let lease = Arc::new(lease);
        let cancellation = Cancellation::new();
        let _entered = self.active.enter(run, cancellation.clone());
        let _writing = listener.begin(self.store.clone(), Arc::clone(&lease));
        let every = self.settings.lease;
        let _heartbeat = Heartbeat::start(
            self.store.clone(),
            Arc::clone(&lease),
            every,
            cancellation.clone(),
        );
        if record.status.is_final() {
            // It ended while this instance waited for the lease.
            self.store.hand_back(&lease).await?;
            return self.over(record).await;
        }
        let deadline = options
            .max_time
            .map(|time| tokio::time::Instant::now() + time.saturating_sub(record.worked));
        let _timer = deadline.map(|deadline| Timer::start(deadline, cancellation.clone()));
        let held = Held {
            lease,
            record,
            options,
            listener,
            cancellation,
            deadline,
        };
        let mut work = self.open(held).await?;
        let result = work.drive().await;
        if let Err(failure) = &result {
            work.interrupt(failure).await;
        }
        result
    }

    /// Checks a thread and says what is kept of it with the run.
    async fn thread_options(
        &self,
        requester: &Principal,
        thread: Thread,
    ) -> Result<ThreadOptions, StartError> {
        if thread.id.is_empty() || thread.id.len() > 128 {
            return Err(StartError::ThreadId { thread: thread.id });
        }
        let owner = thread.owner.unwrap_or_else(|| requester.id.clone());
        let tenant = requester.tenant.as_deref();
        let until = match self.store.thread_position(tenant, &thread.id, &owner).await {
            Ok(position) => position.filter(|_| thread.read_only),
            Err(StoreError::ForeignThread { thread }) => {
                return Err(StartError::ForeignThread { thread, owner });
            }
            Err(error) => return Err(error.into()),
        };
        Ok(ThreadOptions {
            id: thread.id,
            owner,
            window: thread.window,
            read_only: thread.read_only,
            until,
        })
    }

    /// What was said on the run's thread before it.
    async fn earlier(&self, held: &Held) -> Result<Vec<Message>, StoreError> {
        let Some(thread) = &held.options.thread else {
            return Ok(Vec::new());
        };
        let before = match (held.record.thread_position, thread.until) {
            // The thread of the run above is not shown to those below.
            _ if held.record.parent.is_some() => return Ok(Vec::new()),
            (Some(position), _) => position,
            (None, Some(until)) => until.saturating_add(1),
            (None, None) => return Ok(Vec::new()),
        };
        let tenant = held.record.requester.tenant.as_deref();
        let most = thread.window.into();
        let parts = self.store.thread(tenant, &thread.id, before, most).await?;
        thread_history(&parts, usize::try_from(thread.window).unwrap_or(usize::MAX))
    }

    /// Reads what the work on a run needs.
    pub(super) async fn open(self: &Arc<Self>, held: Held) -> Result<Work, StoreError> {
        let run = &held.record.id;
        Ok(Work {
            earlier: self.earlier(&held).await?,
            requester: self.requester(&held.record.requester).await,
            messages: self.store.messages(run).await?,
            calls: self.store.calls(run).await?,
            run: held.record,
            runtime: Arc::clone(self),
            lease: held.lease,
            options: held.options,
            listener: held.listener,
            cancellation: held.cancellation,
            deadline: held.deadline,
        })
    }

    pub(super) async fn wait_for_lease(
        &self,
        run: &RunId,
    ) -> Result<(Lease, RunRecord), StoreError> {
        let mut pause = std::time::Duration::from_millis(5);
        loop {
            match self
                .store
                .acquire(run, &self.instance, self.settings.lease)
                .await
            {
                Err(StoreError::HeldElsewhere { remaining, .. }) => {
                    tokio::time::sleep(pause.min(remaining)).await;
                    pause = (pause * 2).min(std::time::Duration::from_millis(200));
                }
                other => return other,
            }
        }
    }

    /// The ending of a run that is over.
    pub(super) async fn over(&self, run: RunRecord) -> Result<Ending, Failure> {
        let messages = self.store.messages(&run.id).await?;
        let text = match history(&messages, &[])?.pop() {
            Some(Message::Assistant(message)) => message.text,
            _ => String::new(),
        };
        let reason = match run.status {
            RunStatus::Cancelled => FinishReason::Cancelled,
            _ => run
                .ending
                .as_deref()
                .and_then(FinishReason::parse)
                .unwrap_or(FinishReason::Answered),
        };
        Ok(Ending::Finished {
            run: run.id,
            text,
            reason,
        })
    }
}

impl Work {
    /// The run before the gate.
    pub(super) fn asking<'a>(&'a self, run: &'a RunRecord, demand: RunDemand) -> Asking<'a> {
        Asking {
            run,
            requester: &self.requester,
            demand,
        }
    }

    /// What the run itself demands for a call.
    pub(super) async fn demand(&self, tool: &str, arguments: &Canonical) -> RunDemand {
        let Ok(value) = arguments.to_value() else {
            return RunDemand::Unavailable;
        };
        let call = || ProposedCall {
            agent: self.runtime.agent.clone(),
            tool: tool.to_owned(),
            arguments: value,
            requester: self.run.requester.clone(),
            context: self.options.context.visible(),
        };
        self.options.require_approval.demand(call).await
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
            if turn.tool_calls.is_empty() {
                return self.answer(turn).await;
            }
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
        let waiting = store.pending(&self.run.id).await?;
        let event = Event::RunSuspended {
            pending: u32::try_from(waiting.len()).unwrap_or(u32::MAX),
        };
        let last = RunEvent::Suspended {
            pending: waiting.iter().map(|call| call.call.clone()).collect(),
        };
        if self
            .put_down(RunEnd::Suspended, &[event], vec![last])
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
        self.put_down(end, &events, last).await?;
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
        let request = ModelRequest::new(messages)
            .instructions(self.runtime.instructions.clone())
            .tools(self.runtime.offers());
        self.before_model_call(&request).await;
        let mut stream = tokio::select! {
            stream = self.runtime.model.stream(&request) => stream?,
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
        let turn = turn.finish()?;
        self.after_model_call(&turn).await;
        Ok(Some(turn))
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
        let pending = self.runtime.store.pending(&self.run.id).await?;
        Ok(pending.into_iter().find(|pending| pending.call == *call))
    }

    /// Puts the run down, and tells of it as the last event.
    pub(super) async fn put_down(
        &self,
        end: RunEnd,
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
        if let Err(error) = self.put_down(end, &events, vec![last]).await {
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

/// Asks a run's tools to stop when its time is over, unless it is dropped before.
struct Timer(tokio::task::AbortHandle);

impl Timer {
    fn start(deadline: tokio::time::Instant, cancellation: Cancellation) -> Self {
        let wait = async move {
            tokio::time::sleep_until(deadline).await;
            cancellation.cancel();
        };
        Self(tokio::spawn(wait).abort_handle())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
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
