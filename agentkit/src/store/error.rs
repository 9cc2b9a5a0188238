use sea_orm::DbErr;

/// Why the store did not do what it was asked. Nothing was half done: every operation is one
/// transaction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be reached or refused the statement.
    #[error("the database failed while trying to {doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What the database said.
        source: DbErr,
    },
    /// The URL is not one that this build can open.
    #[error("`{url}` cannot be opened: {why}")]
    Url {
        /// The URL, without its password.
        url: String,
        /// What is wrong with it, and the remedy.
        why: &'static str,
    },
    /// A prefix of table names that cannot be one.
    #[error(
        "`{prefix}` cannot begin the names of tables: use lower-case letters, digits and underscores, at most 24"
    )]
    Prefix {
        /// The prefix.
        prefix: String,
    },
    /// The transaction was undone every time it was tried, since others were in its way.
    #[error("the database undid the transaction every time it was tried; nothing was written")]
    Busy,
    /// The connection was lost while a transaction was being committed, and whether it was could
    /// not be read since. Nothing is done twice: read how the run stands before going on.
    #[error("it is not known whether the last change of run `{run}` was written")]
    Unknown {
        /// The run.
        run: String,
    },
    /// The database was written by a newer version of this library.
    #[error(
        "the database has schema `{found}`, which this version does not know; run the newer version of agentkit that wrote it"
    )]
    Newer {
        /// The newest migration in the database.
        found: String,
    },
    /// A row does not hold what this library writes: it is not used.
    #[error("the stored {what} of `{id}` cannot be used: {why}")]
    Corrupt {
        /// What was read.
        what: &'static str,
        /// Of which row.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such run.
    #[error("there is no run `{run}`")]
    UnknownRun {
        /// The id that was asked for.
        run: String,
    },
    /// The thread belongs to somebody else: nothing was written.
    #[error("the thread `{thread}` does not belong to whom the run is for; use another id")]
    ForeignThread {
        /// The thread.
        thread: String,
    },
    /// There is no such call in that run.
    #[error("there is no call `{call}` in run `{run}`")]
    UnknownCall {
        /// The run that was named.
        run: String,
        /// The call that was named.
        call: String,
    },
    /// Another instance works on the run, and holds it until its lease ends or it is done.
    #[error("run `{run}` is being worked on by `{owner}`; wait for it, or try again after its lease ends in at most {} ms", .remaining.as_millis())]
    HeldElsewhere {
        /// The run.
        run: String,
        /// The instance.
        owner: String,
        /// How long its lease still lasts, on the database's clock.
        remaining: std::time::Duration,
    },
    /// This instance's lease has ended and another one may have taken the run over: nothing was
    /// written.
    #[error("this instance no longer holds run `{run}`; nothing was written")]
    LeaseLost {
        /// The run.
        run: String,
    },
    /// A row was changed by someone else since it was read: nothing was written.
    #[error("call `{call}` was changed by another instance at the same time; nothing was written")]
    Conflict {
        /// The call.
        call: String,
    },
    /// Only a run that is over can be erased.
    #[error("run `{run}` is {status}; only a run that is over can be erased: cancel it first")]
    NotOver {
        /// The run.
        run: String,
        /// How it stands.
        status: String,
    },
    /// The operating system gave no randomness for a nonce or a secret.
    #[error("no randomness for a nonce")]
    Randomness(#[source] getrandom::Error),
}

impl StoreError {
    pub(crate) const fn while_trying(doing: &'static str) -> impl Fn(DbErr) -> Self {
        move |source| Self::Database { doing, source }
    }

    pub(crate) fn corrupt(what: &'static str, id: &str, why: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            what,
            id: id.to_owned(),
            why: why.to_string(),
        }
    }
}
