use std::{fmt, sync::Arc};

use tokio::sync::watch;

/// A request to stop, shared by all its clones. It asks and does not force: a tool that looks at
/// it can stop early, and whatever it reports then is its outcome.
#[derive(Clone)]
pub struct Cancellation(Arc<watch::Sender<bool>>);

impl Cancellation {
    /// A cancellation that nobody has asked for yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks all holders to stop. Asking again changes nothing.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody asks; returns at once if that has happened.
    pub async fn cancelled(&self) {
        // The sender is alive as long as `self`, so the channel cannot be closed.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for Cancellation {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation")
            .field(&self.is_cancelled())
            .finish()
    }
}
