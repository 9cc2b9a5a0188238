//! Starting a run and taking it up again: what the work on it needs, before the work.

use std::sync::Arc;

use tracing::Instrument as _;

use super::{
    Ending, FinishReason, Input, RunError, RunOptions, Running, Runtime, StartError,
    drive::{Failure, Held, Work},
    lease::Heartbeat,
    stream::Listener,
    trace,
};
use crate::{
    call::{Principal, RunId, RunSecret},
    journal::{Event, content_digest},
    memory::{Thread, ThreadOptions, history, thread_history},
    model::Message,
    store::{Lease, NewRun, RunRecord, RunStatus, StoreError, ThreadPlace},
    tool::Cancellation,
};

/// How the work on a run begins.
enum Beginning {
    /// The run was started just now, with these options.
    Started(Lease, Box<RunOptions>),
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
        input.defaults(&self.defaults);
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
            .start_run(&new, &self.instance, self.settings.lease)
            .await;
        let lease = match (started, &input.options.thread) {
            (Err(StoreError::ForeignThread { thread }), Some(options)) => {
                let owner = options.owner.clone();
                return Err(StartError::ForeignThread { thread, owner });
            }
            (started, _) => started?,
        };
        Ok(self.spawn(id, Beginning::Started(lease, Box::new(input.options))))
    }

    /// The first event of a run.
    pub(super) fn started(&self, by: &Principal, secret: &RunSecret, message: &str) -> Event {
        Event::RunStarted {
            agent: self.agent.clone(),
            definition: self.definition,
            requester: by.id.clone(),
            authenticated_by: by.authenticated_by.clone(),
            policy: self.policy_digest(),
            built_in_policy: self.policy().is_built_in(),
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
            Box::pin(runtime.work(&id, beginning, listener))
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
            Beginning::Started(lease, options) => (lease, self.store.run(run).await?, *options),
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
        if record.status.is_final() {
            // It ended while this instance waited for the lease.
            return self.over(record).await;
        }
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
        let span = trace::invoke_agent(&self, &held.record, held.lease.epoch);
        #[cfg(feature = "otel")]
        trace::link_to_suspension(&span, &self, &held.lease).await;
        let mut work = self.open(held).await?;
        let result = work.drive().instrument(span.clone()).await;
        trace::put_down(&span, &result);
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
