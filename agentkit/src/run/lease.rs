use std::{sync::Arc, time::Duration};

use tokio::task::AbortHandle;

use crate::{
    store::{Lease, Store, StoreError},
    tool::Cancellation,
};

/// Keeps a lease alive until it is dropped. When the lease is lost, tools are asked to stop;
/// what they still write is refused by the lease's epoch.
pub(super) struct Heartbeat(AbortHandle);

impl Heartbeat {
    pub(super) fn start(
        store: Store,
        lease: Arc<Lease>,
        every: Duration,
        cancellation: Cancellation,
    ) -> Self {
        let beat = async move {
            loop {
                tokio::time::sleep(every / 3).await;
                match store.renew(&lease, every).await {
                    Ok(()) => {}
                    Err(StoreError::LeaseLost { .. }) => {
                        cancellation.cancel();
                        return;
                    }
                    // Tried again at the next beat; the lease has not ended yet.
                    Err(error) => tracing::warn!(run = %lease.run, %error, "renewing the lease"),
                }
            }
        };
        Self(tokio::spawn(beat).abort_handle())
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}
