use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::StatusCode;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::{Authenticator, Limits, Problem, live::Feed, metrics::Metrics};
use crate::{
    call::{CallState, Principal},
    run::{Running, Runtime},
    store::{RunRecord, Store},
};

/// Everything that the handlers share.
pub(super) struct Shared {
    pub(super) agents: BTreeMap<String, Arc<Runtime>>,
    pub(super) store: Store,
    pub(super) authenticator: Arc<dyn Authenticator>,
    pub(super) auditor_role: String,
    pub(super) limits: Limits,
    pub(super) metrics: Metrics,
    pub(super) feed: Feed,
    pub(super) openapi: String,
    rate: DefaultKeyedRateLimiter<Caller>,
    streams: Mutex<HashMap<String, usize>>,
}

pub(super) type Server = Arc<Shared>;

/// Whose requests are counted: a person's, or those of an address before anyone is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Caller {
    Person(Option<String>, String),
    Address(Option<IpAddr>),
}

impl Shared {
    pub(super) fn new(
        agents: BTreeMap<String, Arc<Runtime>>,
        store: Store,
        authenticator: Arc<dyn Authenticator>,
        auditor_role: String,
        limits: Limits,
        openapi: String,
    ) -> Server {
        let quota = Quota::per_second(limits.requests_per_second).allow_burst(limits.burst);
        Arc::new(Self {
            feed: Feed::new(store.clone(), limits.live),
            agents,
            store,
            authenticator,
            auditor_role,
            limits,
            metrics: Metrics::new(),
            openapi,
            rate: RateLimiter::keyed(quota),
            streams: Mutex::default(),
        })
    }

    /// Counts a request of a caller.
    pub(super) fn count(&self, caller: &Caller) -> Result<(), Problem> {
        if self.rate.len() > 10_000 {
            self.rate.retain_recent();
        }
        self.rate.check_key(caller).map_err(|_| {
            let detail = "too many requests; slow down";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail)
        })
    }

    /// Counts a stream of a caller for as long as it is held.
    pub(super) fn open_stream(self: &Arc<Self>, who: &Principal) -> Result<OpenStream, Problem> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let in_all: usize = streams.values().sum();
        let own = streams.get(&who.id).copied().unwrap_or_default();
        if own >= self.limits.streams_per_caller || in_all >= self.limits.streams {
            let detail = "too many open streams; close some";
            let status = StatusCode::TOO_MANY_REQUESTS;
            return Err(Problem::new(status, "too-many-streams", detail));
        }
        streams.insert(who.id.clone(), own + 1);
        self.metrics.streams.inc();
        Ok(OpenStream {
            server: Arc::clone(self),
            who: who.id.clone(),
        })
    }

    /// The agent of this name, where this instance hosts it.
    pub(super) fn agent(&self, name: &str) -> Result<&Arc<Runtime>, Problem> {
        self.agents
            .get(name)
            .ok_or_else(|| Problem::unknown("agent"))
    }

    pub(super) fn is_auditor(&self, who: &Principal) -> bool {
        who.roles.contains(&self.auditor_role)
    }

    /// The agent that a run belongs to, where this instance hosts it or the one at the top of its
    /// delegation.
    pub(super) fn runtime_of(&self, run: &RunRecord) -> Option<Arc<Runtime>> {
        self.agents.get(run.path.first()?)?.at(&run.path)
    }

    /// Continues a run after a decision about a call that is now `state`, if that can make a
    /// difference, in a task that depends on no connection.
    pub(super) fn go_on(self: &Arc<Self>, run: &RunRecord, state: CallState) {
        self.feed.nudge();
        if state.needs_person() {
            return;
        }
        let root = run.path.first();
        let Some(runtime) = root.and_then(|root| self.agents.get(root)).cloned() else {
            // Whichever instance hosts the agent continues the run.
            return;
        };
        let (server, run) = (Arc::clone(self), run.root.clone());
        tokio::spawn(async move {
            match runtime.resume(&run).await {
                Ok(running) => server.follow(running).await,
                Err(error) => tracing::error!(%run, %error, "a run could not be continued"),
            }
        });
    }

    /// Waits until the work on a run ends, and tells the live list when something waits.
    pub(super) async fn follow(self: &Arc<Self>, mut running: Running) {
        let run = running.run().clone();
        while let Some(event) = running.next().await {
            self.heard(&event);
        }
        if let Err(error) = running.ending().await {
            tracing::error!(%run, %error, "the work on a run ended early");
        }
        self.feed.nudge();
    }

    /// What the server does about an event of a run, whoever listens.
    pub(super) fn heard(&self, event: &crate::run::RunEvent) {
        use crate::run::RunEvent;
        match event {
            RunEvent::Pending(_) | RunEvent::ToolEnded { .. } => self.feed.nudge(),
            RunEvent::Delegated { event, .. } => self.heard(event),
            _ => {}
        }
    }
}

/// An open stream; closing it is dropping it.
pub(super) struct OpenStream {
    server: Server,
    who: String,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let streams = &self.server.streams;
        let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = streams.get_mut(&self.who) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                streams.remove(&self.who);
            }
        }
        self.server.metrics.streams.dec();
    }
}
