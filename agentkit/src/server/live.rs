//! The live list of what waits. One reader per server looks whether anything changed, at once
//! after what this instance did and every half second for what others did; subscribers compare
//! what they have shown with the newest list, so that a slow one misses steps but never the end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, watch};

use crate::{
    call::{CallId, Timestamp},
    store::{CallInSight, Store, Watermark},
};

/// How often the database is asked for what other instances did.
const PERIOD: Duration = Duration::from_millis(500);

/// The calls that wait, at one moment.
pub(super) type Waiting = Arc<Snapshot>;

pub(super) struct Snapshot {
    /// The moment, on the database's clock.
    pub(super) at: Timestamp,
    /// A call that did not change is the same allocation as in the snapshot before.
    pub(super) calls: BTreeMap<CallId, Arc<CallInSight>>,
}

pub(super) struct Feed {
    store: Store,
    size: u64,
    sender: watch::Sender<Waiting>,
    nudge: Arc<Notify>,
    reader: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Feed {
    pub(super) fn new(store: Store, size: u64) -> Self {
        Self {
            store,
            size,
            sender: watch::Sender::new(Arc::new(Snapshot {
                at: Timestamp::from_micros(0),
                calls: BTreeMap::new(),
            })),
            nudge: Arc::default(),
            reader: Mutex::default(),
        }
    }

    /// Something changed.
    pub(super) fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// The list from now on; its first value is current when it is marked as changed.
    pub(super) fn subscribe(&self) -> watch::Receiver<Waiting> {
        let receiver = self.sender.subscribe();
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if reader
            .as_ref()
            .is_none_or(tokio::task::JoinHandle::is_finished)
        {
            let (store, sender, nudge) = (
                self.store.clone(),
                self.sender.clone(),
                Arc::clone(&self.nudge),
            );
            *reader = Some(tokio::spawn(read(store, self.size, sender, nudge)));
        }
        receiver
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let reader = self
            .reader
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = reader {
            reader.abort();
        }
    }
}

async fn read(store: Store, size: u64, sender: watch::Sender<Waiting>, nudge: Arc<Notify>) {
    let mut last: Option<Watermark> = None;
    loop {
        if sender.receiver_count() > 0 {
            match refresh(&store, size, &sender, last).await {
                Ok(mark) => last = Some(mark),
                Err(error) => tracing::warn!(%error, "reading what waits"),
            }
        } else {
            last = None;
        }
        // Many changes at once are read once.
        let _ = tokio::time::timeout(PERIOD, nudge.notified()).await;
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

async fn refresh(
    store: &Store,
    size: u64,
    sender: &watch::Sender<Waiting>,
    last: Option<Watermark>,
) -> Result<Watermark, crate::store::StoreError> {
    // Read before the list: what changes in between shows in the next mark.
    let mark = store.watermark().await?;
    if last == Some(mark) {
        return Ok(mark);
    }
    let before = Arc::clone(&sender.borrow());
    let at = store.now().await?;
    let mut calls = BTreeMap::new();
    for call in store.all_waiting(size).await? {
        let id = call.call.id.clone();
        let same = before.calls.get(&id).filter(|old| {
            old.call.version == call.call.version && old.decisions.len() == call.decisions.len()
        });
        let call = same.map_or_else(|| Arc::new(call), Arc::clone);
        calls.insert(id, call);
    }
    sender.send_replace(Arc::new(Snapshot { at, calls }));
    Ok(mark)
}
