//! Following a run on behalf of a client. Nothing depends on whether the client stays.

use std::time::{Duration, Instant};

use axum::http::request::Parts;
use tokio::sync::mpsc;

use super::{
    Problem,
    state::{OpenStream, Server},
};
use crate::{
    call::{Principal, RunId},
    run::{Attached, Running, Sequenced},
    store::RunRecord,
};

/// How long a stream trusts credentials before it has them checked again.
pub(super) const TRUST: Duration = Duration::from_mins(1);

/// How many events a client may be behind the work that it listens to.
const BEHIND: usize = 4096;

/// How long it takes at most to say that a run has no more events.
const LOOK: Duration = Duration::from_millis(100);

/// Whether the credentials of a stream still say that it is `who`, with the same roles. If not, its
/// client signs in again, or subscribes under its other roles.
pub(super) async fn still_holds(server: &Server, who: &Principal, parts: &Parts) -> bool {
    let now = server.authenticator.authenticate(parts).await;
    now.is_ok_and(|now| now == *who)
}

/// The events of a run, for one client.
pub(super) enum Followed {
    /// This instance works on the run.
    Work(mpsc::Receiver<Sequenced>),
    /// They are read from the database, as fast as the client takes them.
    Attached(Box<Reader>),
}

impl Followed {
    /// The events of a run that this instance works on. A client that falls far behind is cut off,
    /// and attaches again.
    pub(super) fn work(server: Server, running: Running, open: OpenStream) -> Self {
        let (sender, events) = mpsc::channel(BEHIND);
        tokio::spawn(forward(server, running, sender, open));
        Self::Work(events)
    }

    /// The events of a run after a place, those that were and those that come, until the run is
    /// over or waits for people; nothing where there are no more.
    pub(super) async fn attached(
        server: &Server,
        who: Principal,
        parts: Parts,
        run: &RunRecord,
        after: i64,
    ) -> Result<Option<Self>, Problem> {
        let root = run.path.first().and_then(|root| server.agents.get(root));
        let runtime = root.ok_or_else(|| Problem::not_hosted(&run.agent))?;
        let open = server.open_stream(&who)?;
        let mut attached = runtime.attach(&run.id, after).await?;
        let first = match tokio::time::timeout(LOOK, attached.next()).await {
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(first))) => Some(first),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => None,
        };
        Ok(Some(Self::Attached(Box::new(Reader {
            server: Server::clone(server),
            who,
            parts,
            attached,
            first,
            checked: Instant::now(),
            _open: open,
        }))))
    }

    /// The next event; none at the end.
    pub(super) async fn next(&mut self) -> Option<Sequenced> {
        match self {
            Self::Work(events) => events.recv().await,
            Self::Attached(reader) => reader.next().await,
        }
    }
}

/// Reads a run's events, for as long as the credentials hold.
pub(super) struct Reader {
    server: Server,
    who: Principal,
    parts: Parts,
    attached: Attached,
    first: Option<Sequenced>,
    checked: Instant,
    _open: OpenStream,
}

impl Reader {
    async fn next(&mut self) -> Option<Sequenced> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            if self.checked.elapsed() >= TRUST {
                if !still_holds(&self.server, &self.who, &self.parts).await {
                    return None;
                }
                self.checked = Instant::now();
            }
            match tokio::time::timeout(TRUST, self.attached.next()).await {
                Ok(Ok(next)) => return next,
                Ok(Err(error)) => {
                    tracing::warn!(run = %self.attached.run(), %error, "reading events");
                    return None;
                }
                Err(_) => {}
            }
        }
    }
}

async fn forward(
    server: Server,
    mut running: Running,
    sender: mpsc::Sender<Sequenced>,
    open: OpenStream,
) {
    // Whether the client still listens makes no difference to the work.
    let mut client = Some((sender, open));
    let run: RunId = running.run().clone();
    while let Some(next) = running.next_sequenced().await {
        server.heard(&next.event);
        if let Some((sender, _)) = &client
            && sender.try_send(next).is_err()
        {
            client = None;
        }
    }
    if let Err(error) = running.ending().await {
        tracing::error!(%run, %error, "the work on a run ended early");
    }
    server.feed.nudge();
}
