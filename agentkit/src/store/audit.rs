//! The journal for those who do not trust the operator: roots, export, verification.

use sea_orm::{
    ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _, Set,
    sea_query::{Expr, ExprTrait as _},
};

use super::{
    Store, StoreError,
    attempt::{Attempt, attempt},
    backend::{self, CommitOutcome},
    entity::{calls, journal, roots, runs},
    rows,
    transaction::Writing,
};
use crate::{
    call::{RunId, Timestamp},
    journal::{
        BrokenExport, ExportLine, ExportedCall, ExportedEntry, ExportedRoot, ExportedRun, Record,
        RunHead, Verified, Verifier,
    },
};

/// How many runs are read at once.
const PAGE: u64 = 200;

/// The most heads under one root; what is left over enters the next.
const HEADS: u64 = 10_000;

impl Store {
    /// Writes a Merkle root (RFC 9162) over the heads of the runs that changed since the last
    /// one, and gives it, or nothing where none changed. Its digest holds all roots before it:
    /// sign it and keep it where the operator of this database cannot change it.
    ///
    /// Meant to be called from time to time, by any instance.
    ///
    /// # Errors
    ///
    /// When the database fails or a row does not hold what this library writes.
    pub async fn write_root(&self) -> Result<Option<ExportedRoot>, StoreError> {
        attempt!(self, |attempt| attempt.try_write_root())
    }

    /// Gives the whole journal to `write`, a line at a time: every run with its calls and events,
    /// and then the roots. Runs may go on meanwhile.
    ///
    /// Arguments stand in it, as far as they were not erased: it is for those who may see them.
    ///
    /// # Errors
    ///
    /// When the database fails, a row does not hold what this library writes, or `write` fails.
    pub async fn export<E: From<StoreError>>(
        &self,
        mut write: impl FnMut(&ExportLine) -> Result<(), E>,
    ) -> Result<(), E> {
        // Read first: the events that they name are there already.
        let roots = roots::Entity::find()
            .order_by_asc(roots::Column::Sequence)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read the roots"))?;
        let mut after = String::new();
        loop {
            let page = runs::Entity::find()
                .filter(runs::Column::Id.gt(after.as_str()))
                .order_by_asc(runs::Column::Id)
                .limit(PAGE)
                .all(&self.inner.reader)
                .await
                .map_err(StoreError::while_trying("read the runs"))?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            for run in &page {
                self.export_run(run, &mut write).await?;
            }
        }
        for row in &roots {
            write(&ExportLine::new(Record::Root(root(row)?)))?;
        }
        Ok(())
    }

    async fn export_run<E: From<StoreError>>(
        &self,
        row: &runs::Model,
        write: &mut impl FnMut(&ExportLine) -> Result<(), E>,
    ) -> Result<(), E> {
        let run: RunId = row
            .id
            .parse()
            .map_err(|error| StoreError::corrupt("id", &row.id, error))?;
        let head = rows::head(row)?;
        let path: Vec<String> = serde_json::from_str(&row.path)
            .map_err(|error| StoreError::corrupt("path", &row.id, error))?;
        write(&ExportLine::new(Record::Run(ExportedRun {
            run: run.clone(),
            agent: row.agent.clone(),
            tenant: row.tenant.clone(),
            requester: row.requester_id.clone(),
            status: row.status.clone(),
            sequence: head.sequence,
            head: head.digest,
            at: Timestamp::from_micros(row.created_at),
        })))?;
        let found = calls::Entity::find()
            .filter(calls::Column::RunId.eq(row.id.as_str()))
            .order_by_asc(calls::Column::Step)
            .order_by_asc(calls::Column::Position)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read calls"))?;
        for row_of_call in &found {
            let call = rows::call(row_of_call)?;
            write(&ExportLine::new(Record::Call(ExportedCall {
                run: call.run,
                call: call.id,
                tool: call.tool,
                state: call.state.as_str().to_owned(),
                path: path.clone(),
                definition: call.definition,
                input_schema: call.input_schema,
                policy_slice: call.policy_slice,
                arguments: call.arguments.map(|arguments| arguments.to_string()),
                nonce: call.nonce.map(|nonce| hex(nonce.as_bytes())),
                fingerprint: call.fingerprint,
                at: Timestamp::from_micros(row_of_call.created_at),
            })))?;
        }
        let entries = journal::Entity::find()
            .filter(journal::Column::RunId.eq(row.id.as_str()))
            // What was written since the row was read belongs to another head.
            .filter(journal::Column::Sequence.lte(head.sequence))
            .order_by_asc(journal::Column::Sequence)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read the journal"))?;
        for entry in &entries {
            let entry = rows::entry(entry)?;
            write(&ExportLine::new(Record::Entry(ExportedEntry {
                run: run.clone(),
                sequence: entry.sequence,
                at: entry.at,
                previous: entry.previous,
                digest: entry.digest,
                body: entry.body.to_string(),
            })))?;
        }
        Ok(())
    }

    /// Checks the chains of all runs, the fingerprints of all calls, and all roots. What does not
    /// fit is the inner error.
    ///
    /// # Errors
    ///
    /// When the database fails or a row does not hold what this library writes.
    pub async fn verify_all(&self) -> Result<Result<Verified, BrokenExport>, StoreError> {
        let mut verifier = Verifier::new();
        let checked = self
            .export(|line| {
                let line = serde_json::to_string(line)
                    .map_err(|error| StoreError::corrupt("line", "export", error))?;
                verifier.line(&line).map_err(Broken::Export)
            })
            .await;
        match checked {
            Ok(()) => Ok(verifier.finish()),
            Err(Broken::Export(broken)) => Ok(Err(broken)),
            Err(Broken::Store(error)) => Err(error),
        }
    }
}

impl Attempt {
    async fn try_write_root(&self) -> Result<Option<ExportedRoot>, StoreError> {
        let writing = Writing::begin(self).await?;
        let last = roots::Entity::find()
            .order_by_desc(roots::Column::Sequence)
            .lock_exclusive()
            .one(&writing.tx)
            .await
            .map_err(StoreError::while_trying("read the roots"))?;
        let last = last.as_ref().map(root).transpose()?;
        let changed = runs::Entity::find()
            .filter(Expr::col(runs::Column::JournalSequence).gt(Expr::col(runs::Column::Rooted)))
            .order_by_asc(runs::Column::Id)
            .limit(HEADS)
            .all(&writing.tx)
            .await
            .map_err(StoreError::while_trying("read the heads of runs"))?;
        let heads = changed
            .iter()
            .map(head)
            .filter_map(Result::transpose)
            .collect::<Result<Vec<_>, _>>()?;
        if heads.is_empty() {
            return Ok(None);
        }
        let now = backend::now(&writing.tx).await?;
        let new = ExportedRoot::after(last.as_ref(), now, heads);
        let heads = serde_json::to_string(&new.heads)
            .map_err(|error| StoreError::corrupt("heads", "root", error))?;
        let row = roots::ActiveModel {
            sequence: Set(new.sequence),
            previous: Set(new.previous.map(|digest| digest.as_bytes().to_vec())),
            heads: Set(heads),
            root: Set(new.root.as_bytes().to_vec()),
            digest: Set(new.digest.as_bytes().to_vec()),
            created_at: Set(now.as_micros()),
        };
        let written = roots::Entity::insert(row)
            .exec_without_returning(&writing.tx)
            .await;
        if let Err(error) = written {
            // Another instance wrote the root of this number first.
            return match error.sql_err() {
                Some(sea_orm::SqlErr::UniqueConstraintViolation(_)) => Err(StoreError::Busy),
                _ => Err(StoreError::while_trying("write a root")(error)),
            };
        }
        for head in &new.heads {
            // A run that went on meanwhile has a head that enters the next root.
            runs::Entity::update_many()
                .col_expr(runs::Column::Rooted, Expr::value(head.sequence))
                .filter(runs::Column::Id.eq(head.run.as_str()))
                .filter(runs::Column::Rooted.lt(head.sequence))
                .exec(&writing.tx)
                .await
                .map_err(StoreError::while_trying("write a root"))?;
        }
        match writing.commit().await? {
            CommitOutcome::Committed => Ok(Some(new)),
            CommitOutcome::Unknown => {
                let found = roots::Entity::find_by_id(new.sequence)
                    .one(&self.inner.reader)
                    .await
                    .map_err(StoreError::while_trying("read the roots"))?;
                match found {
                    Some(found) if found.digest == new.digest.as_bytes() => Ok(Some(new)),
                    _ => Err(StoreError::Busy),
                }
            }
        }
    }
}

enum Broken {
    Export(BrokenExport),
    Store(StoreError),
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn head(row: &runs::Model) -> Result<Option<RunHead>, StoreError> {
    let head = rows::head(row)?;
    let run = row
        .id
        .parse()
        .map_err(|error| StoreError::corrupt("id", &row.id, error))?;
    Ok(head.digest.map(|digest| RunHead {
        run,
        sequence: head.sequence,
        digest,
    }))
}

fn root(row: &roots::Model) -> Result<ExportedRoot, StoreError> {
    let id = format!("root {}", row.sequence);
    Ok(ExportedRoot {
        sequence: row.sequence,
        at: Timestamp::from_micros(row.created_at),
        previous: rows::optional_digest("previous root", &id, row.previous.as_ref())?,
        heads: serde_json::from_str(&row.heads)
            .map_err(|error| StoreError::corrupt("heads", &id, error))?,
        root: rows::digest("root", &id, &row.root)?,
        digest: rows::digest("root digest", &id, &row.digest)?,
    })
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
