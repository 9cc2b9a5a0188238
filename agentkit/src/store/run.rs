use std::time::Duration;

use sea_orm::{
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _, Set,
    TryIntoModel as _,
    sea_query::{Query, SimpleExpr},
};

use super::{
    CallRecord, Lease, ParentCall, RunRecord, RunStatus, Store, StoreError, StoredMessage,
    attempt::{Attempt, attempt},
    backend,
    call::storable,
    entity::{calls, journal, messages, policy_versions, runs},
    events::{StoredEvent, insert_events},
    migration::FORMAT,
    rows,
    threads::{self, ThreadPlace},
    transaction::{RunTransaction, Writing},
};
use crate::{
    call::{CallState, Digest, Principal, RunId, RunSecret, Timestamp},
    journal::{BrokenChain, Entry, Event},
};

/// What a new run consists of.
pub(crate) struct NewRun {
    pub(crate) id: RunId,
    pub(crate) root: RunId,
    pub(crate) parent: Option<ParentCall>,
    pub(crate) path: Vec<String>,
    pub(crate) thread: Option<ThreadPlace>,
    pub(crate) agent: String,
    pub(crate) definition: Digest,
    pub(crate) requester: Principal,
    pub(crate) secret: RunSecret,
    pub(crate) options: String,
    /// The input as a message, JSON.
    pub(crate) input: String,
    pub(crate) events: Vec<Event>,
}

/// How a run is put down.
pub(crate) enum RunEnd {
    Finished {
        message: Option<String>,
        usage: Usage,
        /// Why it is over.
        ending: &'static str,
    },
    Cancelled,
    Interrupted {
        error: String,
    },
    Suspended,
}

/// Tokens of one answer of the model.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Store {
    /// Writes a new run and takes the lease on it.
    pub(crate) async fn start_run(
        &self,
        new: &NewRun,
        owner: &str,
        lease: Duration,
    ) -> Result<Lease, StoreError> {
        attempt!(self, |attempt| attempt.try_start_run(new, owner, lease))
    }

    /// Takes the lease on a run that nobody holds, or whose holder's lease has ended. A run that
    /// is over stays as it is, and the lease given for it permits nothing.
    pub(crate) async fn acquire(
        &self,
        run: &RunId,
        owner: &str,
        lease: Duration,
    ) -> Result<(Lease, RunRecord), StoreError> {
        attempt!(self, |attempt| attempt.try_acquire(run, owner, lease))
    }

    /// Extends a lease.
    pub(crate) async fn renew(&self, lease: &Lease, by: Duration) -> Result<(), StoreError> {
        attempt!(self, |attempt| attempt.try_renew(lease, by))
    }

    /// Puts a run down: writes how it stands and gives the lease back. A run is not suspended
    /// while a call of it can run, as after a decision that arrived just now: `false` then.
    /// What listeners were shown is written with it.
    pub(crate) async fn put_down(
        &self,
        lease: &Lease,
        end: &RunEnd,
        events: &[Event],
        shown: &[StoredEvent],
    ) -> Result<bool, StoreError> {
        attempt!(self, |attempt| attempt
            .try_put_down(lease, end, events, shown))
    }

    /// One run.
    ///
    /// # Errors
    ///
    /// When there is none of that id, or the database fails.
    pub async fn run(&self, run: &RunId) -> Result<RunRecord, StoreError> {
        let row = runs::Entity::find_by_id(run.as_str())
            .one(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read a run"))?
            .ok_or_else(|| StoreError::UnknownRun {
                run: run.to_string(),
            })?;
        rows::run(&row)
    }

    /// The messages of a run, in order, without the results of its calls.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn messages(&self, run: &RunId) -> Result<Vec<StoredMessage>, StoreError> {
        let found = messages::Entity::find()
            .filter(messages::Column::RunId.eq(run.as_str()))
            .order_by_asc(messages::Column::Sequence)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read messages"))?;
        found.into_iter().map(rows::message).collect()
    }

    /// The calls of a run, in the order in which the model asked for them.
    ///
    /// # Errors
    ///
    /// When the database fails or a row does not hold what this library writes.
    pub async fn calls(&self, run: &RunId) -> Result<Vec<CallRecord>, StoreError> {
        let found = calls::Entity::find()
            .filter(calls::Column::RunId.eq(run.as_str()))
            .order_by_asc(calls::Column::Step)
            .order_by_asc(calls::Column::Position)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read calls"))?;
        found.iter().map(rows::call).collect()
    }

    /// The journal of a run, in order.
    ///
    /// # Errors
    ///
    /// When the database fails or a row does not hold what this library writes.
    pub async fn journal(&self, run: &RunId) -> Result<Vec<Entry>, StoreError> {
        let found = journal::Entity::find()
            .filter(journal::Column::RunId.eq(run.as_str()))
            .order_by_asc(journal::Column::Sequence)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read the journal"))?;
        found.iter().map(rows::entry).collect()
    }

    /// Checks the chain of a run's journal.
    ///
    /// # Errors
    ///
    /// When the database fails. A journal that does not verify is the inner error.
    pub async fn verify_journal(&self, run: &RunId) -> Result<Result<(), BrokenChain>, StoreError> {
        let row = runs::Entity::find_by_id(run.as_str())
            .one(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read a run"))?
            .ok_or_else(|| StoreError::UnknownRun {
                run: run.to_string(),
            })?;
        let entries = self.journal(run).await?;
        Ok(crate::journal::verify(run, &entries, rows::head(&row)?))
    }

    /// Records a policy version that an agent has in force, once.
    pub(crate) async fn record_policy(
        &self,
        agent: &str,
        digest: &Digest,
        built_in: bool,
        body: String,
    ) -> Result<(), StoreError> {
        let known = policy_versions::Entity::find_by_id(digest.as_bytes().to_vec())
            .one(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read policy versions"))?;
        if known.is_some() {
            return Ok(());
        }
        let now = self.now().await?;
        let row = policy_versions::ActiveModel {
            digest: Set(digest.as_bytes().to_vec()),
            agent: Set(agent.to_owned()),
            built_in: Set(built_in),
            body: Set(body),
            created_at: Set(now.as_micros()),
        };
        policy_versions::Entity::insert(row)
            .on_conflict_do_nothing()
            .exec_without_returning(&self.inner.writer)
            .await
            .map(|_| ())
            .map_err(StoreError::while_trying("record a policy version"))
    }
}

impl Attempt {
    async fn try_start_run(
        &self,
        new: &NewRun,
        owner: &str,
        lease: Duration,
    ) -> Result<Lease, StoreError> {
        let writing = Writing::begin(self).await?;
        let now = backend::now(&writing.tx).await?;
        let requester = serde_json::to_string(&new.requester)
            .map_err(|error| StoreError::corrupt("requester", new.id.as_str(), error))?;
        let position = match &new.thread {
            Some(place) => {
                threads::take_place(&writing.tx, new.requester.tenant.as_deref(), place, now)
                    .await?
            }
            None => None,
        };
        let path = serde_json::to_string(&new.path)
            .map_err(|error| StoreError::corrupt("path", new.id.as_str(), error))?;
        let row = runs::ActiveModel {
            id: Set(new.id.to_string()),
            format: Set(FORMAT),
            root_id: Set(new.root.to_string()),
            parent_id: Set(new.parent.as_ref().map(|parent| parent.run.to_string())),
            parent_call: Set(new.parent.as_ref().map(|parent| parent.call.to_string())),
            path: Set(path),
            agent: Set(new.agent.clone()),
            definition: Set(new.definition.as_bytes().to_vec()),
            status: Set(RunStatus::Running.as_str().to_owned()),
            ending: Set(None),
            cancelled_at: Set(None),
            thread_id: Set(new.thread.as_ref().map(|place| place.id.clone())),
            thread_position: Set(position),
            tenant: Set(new.requester.tenant.clone()),
            requester_id: Set(new.requester.id.clone()),
            requester: Set(requester),
            secret: Set(new.secret.as_bytes().to_vec()),
            options: Set(new.options.clone()),
            step: Set(0),
            messages: Set(1),
            input_tokens: Set(0),
            output_tokens: Set(0),
            worked: Set(0),
            worked_since: Set(now.as_micros()),
            error: Set(None),
            lease_owner: Set(Some(owner.to_owned())),
            lease_epoch: Set(1),
            lease_until: Set(now.saturating_add(lease).as_micros()),
            wake_at: Set(None),
            journal_sequence: Set(0),
            journal_head: Set(None),
            rooted: Set(0),
            created_at: Set(now.as_micros()),
            updated_at: Set(now.as_micros()),
        };
        let written = row
            .clone()
            .try_into_model()
            .map_err(StoreError::while_trying("write a run"))?;
        runs::Entity::insert(row)
            .exec_without_returning(&writing.tx)
            .await
            .map_err(StoreError::while_trying("write a run"))?;
        insert_message(&writing.tx, &new.id, 0, 0, new.input.clone(), now).await?;
        let mut run = RunTransaction::for_new(self, writing, now, written, new.id.clone());
        for event in &new.events {
            run.append(event)?;
        }
        run.commit().await?;
        Ok(Lease::new(new.id.clone(), owner.to_owned(), 1))
    }

    async fn try_acquire(
        &self,
        run: &RunId,
        owner: &str,
        lease: Duration,
    ) -> Result<(Lease, RunRecord), StoreError> {
        let mut transaction = RunTransaction::begin(self, run).await?;
        let row = &transaction.row;
        let until = Timestamp::from_micros(row.lease_until);
        if let Some(holder) = &row.lease_owner {
            let remaining = until.saturating_since(transaction.now);
            if !remaining.is_zero() {
                let (run, owner) = (row.id.clone(), holder.clone());
                return Err(StoreError::HeldElsewhere {
                    run,
                    owner,
                    remaining,
                });
            }
        }
        let mut record = rows::run(row)?;
        if record.status.is_final() {
            // Were it taken here, nobody would give it back after a crash.
            let lease = Lease::new(run.clone(), owner.to_owned(), row.lease_epoch);
            return Ok((lease, record));
        }
        let epoch = row.lease_epoch.saturating_add(1);
        let taken_over = row.lease_owner.is_some();
        if taken_over {
            transaction.append(&Event::TakenOver { epoch })?;
        }
        let until = transaction.now.saturating_add(lease);
        transaction.changes.lease_owner = Set(Some(owner.to_owned()));
        transaction.changes.lease_epoch = Set(epoch);
        transaction.changes.lease_until = Set(until.as_micros());
        transaction.changes.worked_since = Set(transaction.now.as_micros());
        transaction.changes.wake_at = Set(None);
        record.status = RunStatus::Running;
        transaction.changes.status = Set(RunStatus::Running.as_str().to_owned());
        transaction.changes.error = Set(None);
        transaction.commit().await?;
        Ok((Lease::new(run.clone(), owner.to_owned(), epoch), record))
    }

    async fn try_renew(&self, lease: &Lease, by: Duration) -> Result<(), StoreError> {
        let mut transaction = RunTransaction::begin_held(self, lease).await?;
        let until = transaction.now.saturating_add(by);
        transaction.changes.lease_until = Set(until.as_micros());
        transaction.account();
        transaction.commit().await
    }

    async fn try_put_down(
        &self,
        lease: &Lease,
        end: &RunEnd,
        events: &[Event],
        shown: &[StoredEvent],
    ) -> Result<bool, StoreError> {
        let mut transaction = RunTransaction::begin_held(self, lease).await?;
        if matches!(end, RunEnd::Suspended) {
            if can_run(&transaction).await? {
                return Ok(false);
            }
            // What was decided meanwhile has been seen, unless its end has not been told.
            if transaction.row.wake_at.is_some() && !has_untold(&transaction).await? {
                transaction.changes.wake_at = Set(None);
            }
        }
        let status = match end {
            RunEnd::Finished {
                message,
                usage,
                ending,
            } => {
                transaction.changes.ending = Set(Some((*ending).to_owned()));
                transaction.use_tokens(*usage);
                if let Some(message) = message {
                    let step = transaction.row.step.saturating_add(1);
                    transaction.changes.step = Set(step);
                    transaction.say(&lease.run, step, message.clone()).await?;
                }
                RunStatus::Finished
            }
            RunEnd::Cancelled => RunStatus::Cancelled,
            RunEnd::Interrupted { error } => {
                transaction.changes.error = Set(Some(storable(error)));
                RunStatus::Interrupted
            }
            RunEnd::Suspended => RunStatus::Suspended,
        };
        for event in events {
            transaction.append(event)?;
        }
        insert_events(transaction.tx(), &lease.run, shown).await?;
        transaction.put_down(status);
        transaction.commit().await?;
        Ok(true)
    }
}

async fn can_run(transaction: &RunTransaction) -> Result<bool, StoreError> {
    let states = [CallState::Ready.as_str(), CallState::Approved.as_str()];
    any_call(transaction, calls::Column::State.is_in(states)).await
}

/// Whether a call was ended by somebody who does not work on the run, and that was not seen yet.
async fn has_untold(transaction: &RunTransaction) -> Result<bool, StoreError> {
    any_call(transaction, calls::Column::Untold.eq(true)).await
}

async fn any_call(transaction: &RunTransaction, such: SimpleExpr) -> Result<bool, StoreError> {
    // The root of a delegation answers for the runs below it.
    let row = &transaction.row;
    let runs = Query::select()
        .column(runs::Column::Id)
        .from(runs::Entity)
        .and_where(runs::Column::RootId.eq(row.root_id.as_str()))
        .to_owned();
    let of = if row.parent_id.is_none() {
        calls::Column::RunId.in_subquery(runs)
    } else {
        calls::Column::RunId.eq(row.id.as_str())
    };
    calls::Entity::find()
        .filter(of)
        .filter(such)
        .one(transaction.tx())
        .await
        .map(|found| found.is_some())
        .map_err(StoreError::while_trying("read calls"))
}

pub(super) async fn insert_message(
    tx: &impl ConnectionTrait,
    run: &RunId,
    sequence: i32,
    step: i32,
    body: String,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = messages::ActiveModel {
        run_id: Set(run.to_string()),
        sequence: Set(sequence),
        step: Set(step),
        body: Set(body),
        created_at: Set(now.as_micros()),
    };
    messages::Entity::insert(row)
        .exec_without_returning(tx)
        .await
        .map(|_| ())
        .map_err(StoreError::while_trying("write a message"))
}
