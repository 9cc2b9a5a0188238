//! Erasure: what people, the model and the tools wrote goes, what was decided stays.

use std::time::Duration;

use sea_orm::{
    ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _, Set,
    sea_query::Expr,
};

use super::{
    RunStatus, Store, StoreError,
    attempt::{Attempt, attempt},
    entity::{calls, decisions, messages, runs},
    events::delete_events,
    transaction::RunTransaction,
};
use crate::{call::RunId, journal::Event};

impl Store {
    /// Erases the content of a run that is over, and of those below it: its messages, arguments,
    /// questions, answers, results and reasons, what listeners were shown, and the secret under which their digests were made, so that nothing
    /// is left to guess. The journal stays and still verifies.
    ///
    /// # Errors
    ///
    /// When there is no such run, it is not over, or the database fails.
    pub async fn erase(&self, run: &RunId, reason: &str) -> Result<(), StoreError> {
        for below in self.delegated(run).await? {
            self.erase_one(&below.id, reason).await?;
        }
        self.erase_one(run, reason).await
    }

    async fn erase_one(&self, run: &RunId, reason: &str) -> Result<(), StoreError> {
        attempt!(self, |attempt| attempt.try_erase(run, reason))
    }

    /// Erases the content of runs that have been over for longer than `keep`, at most a thousand
    /// at a time; how many it were.
    ///
    /// # Errors
    ///
    /// When the database fails: those that were erased before it did stay erased.
    pub async fn erase_older(&self, keep: Duration) -> Result<usize, StoreError> {
        let now = self.now().await?.as_micros();
        let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        let ended = [RunStatus::Finished.as_str(), RunStatus::Cancelled.as_str()];
        let old = runs::Entity::find()
            .filter(runs::Column::Status.is_in(ended))
            .filter(runs::Column::UpdatedAt.lt(now.saturating_sub(keep)))
            // Those below are erased with their root.
            .filter(runs::Column::ParentId.is_null())
            .filter(runs::Column::Secret.ne(vec![0_u8; 32]))
            .order_by_asc(runs::Column::Id)
            .limit(1000)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read the runs"))?;
        for row in &old {
            let run = row
                .id
                .parse()
                .map_err(|error| StoreError::corrupt("id", &row.id, error))?;
            self.erase(&run, "older than it is kept").await?;
        }
        Ok(old.len())
    }
}

impl Attempt {
    async fn try_erase(&self, run: &RunId, reason: &str) -> Result<(), StoreError> {
        let doing = "erase a run";
        let mut transaction = RunTransaction::begin(self, run).await?;
        let status: Option<RunStatus> = transaction.row.status.parse().ok();
        if !status.is_some_and(RunStatus::is_final) {
            return Err(StoreError::NotOver {
                run: run.to_string(),
                status: transaction.row.status.clone(),
            });
        }
        let nothing = || Expr::value(Option::<String>::None);
        let of_run = calls::Entity::find()
            .select_only()
            .column(calls::Column::Id)
            .filter(calls::Column::RunId.eq(run.as_str()))
            .into_tuple::<String>()
            .all(transaction.tx())
            .await
            .map_err(StoreError::while_trying(doing))?;
        decisions::Entity::update_many()
            .col_expr(decisions::Column::Reason, nothing())
            .col_expr(decisions::Column::Content, nothing())
            .filter(decisions::Column::CallId.is_in(of_run))
            .exec(transaction.tx())
            .await
            .map_err(StoreError::while_trying(doing))?;
        calls::Entity::update_many()
            .col_expr(calls::Column::Arguments, nothing())
            .col_expr(calls::Column::Payload, nothing())
            .col_expr(calls::Column::Answer, nothing())
            .col_expr(calls::Column::Outcome, nothing())
            .filter(calls::Column::RunId.eq(run.as_str()))
            .exec(transaction.tx())
            .await
            .map_err(StoreError::while_trying(doing))?;
        messages::Entity::delete_many()
            .filter(messages::Column::RunId.eq(run.as_str()))
            .exec(transaction.tx())
            .await
            .map_err(StoreError::while_trying(doing))?;
        delete_events(transaction.tx(), run).await?;
        transaction.changes.secret = Set(vec![0; 32]);
        transaction.changes.error = Set(None);
        transaction.append(&Event::ContentErased {
            reason: reason.to_owned(),
        })?;
        transaction.commit().await
    }
}
