use std::{sync::Arc, time::Duration};

use tokio::task::AbortHandle;

use crate::{
    store::{Lease, Store, StoreError},
    tool::Cancellation,
};

/// How often the holder of a lease looks whether somebody in another process cancelled its run.
const LOOK: Duration = Duration::from_millis(500);

/// Keeps a lease alive until it is dropped. When the lease is lost, tools are asked to stop;
/// what they still write is refused by the lease's epoch. They are asked to stop as well when the
/// run is cancelled, by whichever process.
pub(super) struct Heartbeat(AbortHandle);

impl Heartbeat {
    pub(super) fn start(
        store: Store,
        lease: Arc<Lease>,
        every: Duration,
        cancellation: Cancellation,
    ) -> Self {
        let beat = async move {
            let mut renewed = tokio::time::Instant::now();
            loop {
                tokio::time::sleep(LOOK.min(every / 3)).await;
                if renewed.elapsed() >= every / 4 {
                    match store.renew(&lease, every).await {
                        Ok(()) => renewed = tokio::time::Instant::now(),
                        Err(StoreError::LeaseLost { .. }) => {
                            cancellation.cancel();
                            return;
                        }
                        // Tried again at the next beat; the lease has not ended yet.
                        Err(error) => {
                            tracing::warn!(run = %lease.run, %error, "renewing the lease");
                        }
                    }
                }
                match store.is_cancelled(&lease.run).await {
                    Ok(true) => cancellation.cancel(),
                    Ok(false) => {}
                    Err(error) => tracing::warn!(run = %lease.run, %error, "reading a run"),
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
