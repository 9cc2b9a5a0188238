use crate::{call::RunId, model::ModelError, store::StoreError};

/// Why a run was not started. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The store failed.
    #[error("the run could not be started")]
    Store(#[from] StoreError),
    /// The thread belongs to somebody else.
    #[error("the thread `{thread}` does not belong to `{owner}`; use another id")]
    ForeignThread {
        /// The thread.
        thread: String,
        /// For whom the run was to be.
        owner: String,
    },
    /// The id of the thread cannot be used.
    #[error("`{thread}` is no id for a thread: it must have 1 to 128 bytes")]
    ThreadId {
        /// The id.
        thread: String,
    },
    /// An option cannot be stored.
    #[error("the options of the run cannot be stored")]
    Options(#[source] serde_json::Error),
}

/// Why working on a run ended without an ending. The run is not lost: it can be resumed from its
/// last durable record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is no such run of this agent.
    #[error("agent `{agent}` has no run `{run}`")]
    UnknownRun {
        /// The agent that was asked.
        agent: String,
        /// The id that was asked for.
        run: RunId,
    },
    /// The model failed; nothing of that turn counts.
    #[error("the model failed; run `{run}` can be resumed")]
    Model {
        /// The run.
        run: RunId,
        /// What went wrong.
        source: ModelError,
    },
    /// The store failed.
    #[error("the store failed; run `{run}` can be resumed")]
    Store {
        /// The run.
        run: RunId,
        /// What went wrong.
        source: StoreError,
    },
    /// The task that worked on the run is gone, as when the process shuts down.
    #[error("the work on run `{run}` was cut off; it can be resumed")]
    CutOff {
        /// The run.
        run: RunId,
    },
}
