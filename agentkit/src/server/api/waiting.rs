//! The live list of what waits, as server-sent events.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Instant};

use axum::{
    http::request::Parts,
    response::sse::{Event, Sse},
};
use futures_util::{Stream, stream};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::{
    super::{
        following::{TRUST, still_holds},
        live::Waiting,
        sight::Sight,
        state::{OpenStream, Server},
        view::PendingView,
    },
    sse::{event, keep_alive},
};
use crate::{
    call::{CallId, Principal, Timestamp},
    store::{CallInSight, StoreError},
};

/// A subscriber of the live list: what it was told, and what it is told next.
struct Subscriber {
    server: Server,
    who: Principal,
    parts: Parts,
    receiver: watch::Receiver<Waiting>,
    shown: BTreeMap<CallId, Arc<CallInSight>>,
    sender: mpsc::Sender<Event>,
    _open: OpenStream,
}

pub(super) fn live(
    server: Server,
    who: Principal,
    parts: Parts,
    receiver: watch::Receiver<Waiting>,
    open: OpenStream,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (sender, events) = mpsc::channel(64);
    let subscriber = Subscriber {
        server,
        who,
        parts,
        receiver,
        shown: BTreeMap::new(),
        sender,
        _open: open,
    };
    tokio::spawn(subscriber.serve());
    Sse::new(from(events)).keep_alive(keep_alive())
}

fn from(events: mpsc::Receiver<Event>) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(events, async |mut events| {
        let event = events.recv().await?;
        Some((Ok(event), events))
    })
}

/// The stream ends: its client is gone, or may not listen any more.
struct Over;

impl Subscriber {
    async fn serve(mut self) {
        if self.snapshot().await.is_err() {
            return;
        }
        let mut checked = Instant::now();
        loop {
            if checked.elapsed() >= TRUST {
                if !still_holds(&self.server, &self.who, &self.parts).await {
                    return;
                }
                checked = Instant::now();
            }
            let changed = tokio::select! {
                changed = tokio::time::timeout(TRUST, self.receiver.changed()) => changed,
                () = self.sender.closed() => return,
            };
            match changed {
                Ok(Ok(())) if self.changes().await.is_ok() => {}
                Ok(_) => return,
                Err(_) => {}
            }
        }
    }

    /// All that waits now, straight from the database.
    async fn snapshot(&mut self) -> Result<(), Over> {
        let size = self.server.limits.live;
        let all = self
            .server
            .store
            .all_waiting(size)
            .await
            .map_err(|error| gave_up(&error))?;
        let at = self
            .server
            .store
            .now()
            .await
            .map_err(|error| gave_up(&error))?;
        let mut pending = Vec::new();
        for call in all {
            if let Some(view) = self
                .view(&call, at)
                .await
                .map_err(|error| gave_up(&error))?
            {
                self.shown.insert(call.call.id.clone(), Arc::new(call));
                pending.push(view);
            }
        }
        self.send(event("snapshot", &json!({ "pending": pending })))
            .await
    }

    async fn changes(&mut self) -> Result<(), Over> {
        let now = Arc::clone(&self.receiver.borrow_and_update());
        let gone: Vec<_> = self
            .shown
            .keys()
            .filter(|call| !now.calls.contains_key(call))
            .cloned()
            .collect();
        for call in gone {
            self.shown.remove(&call);
            self.send(event("remove", &json!({ "call": call }))).await?;
        }
        for (id, call) in &now.calls {
            let same = self.shown.get(id).is_some_and(|old| {
                Arc::ptr_eq(old, call)
                    || (old.call.version == call.call.version
                        && old.decisions.len() == call.decisions.len())
            });
            if same {
                continue;
            }
            match self
                .view(call, now.at)
                .await
                .map_err(|error| gave_up(&error))?
            {
                Some(view) => {
                    self.shown.insert(id.clone(), Arc::clone(call));
                    let view = serde_json::to_value(view).unwrap_or_default();
                    self.send(event("upsert", &view)).await?;
                }
                None => {
                    if self.shown.remove(id).is_some() {
                        self.send(event("remove", &json!({ "call": id }))).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn view(
        &self,
        call: &CallInSight,
        at: Timestamp,
    ) -> Result<Option<PendingView>, StoreError> {
        let sight = Sight::at(&self.server, &self.who, at);
        let Some(standing) = sight.standing(call).await? else {
            return Ok(None);
        };
        Ok(PendingView::new(&self.server, call, &standing))
    }

    async fn send(&self, event: Event) -> Result<(), Over> {
        self.sender.send(event).await.map_err(|_| Over)
    }
}

fn gave_up(error: &StoreError) -> Over {
    tracing::warn!(%error, "a live list ended");
    Over
}
