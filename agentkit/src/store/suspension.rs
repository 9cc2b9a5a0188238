//! What is on record of a run's last suspension.

use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _};

use super::{Store, StoreError, entity::journal, rows};
use crate::{call::RunId, journal::Event};

impl Store {
    /// The last time that a run was suspended, if it ever was.
    pub(crate) async fn last_suspension(&self, run: &RunId) -> Result<Option<Event>, StoreError> {
        let found = journal::Entity::find()
            .filter(journal::Column::RunId.eq(run.as_str()))
            .filter(journal::Column::Event.eq("run_suspended"))
            .order_by_desc(journal::Column::Sequence)
            .one(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read the journal"))?;
        found
            .map(|row| {
                rows::entry(&row)?
                    .body
                    .decode()
                    .map_err(|error| StoreError::corrupt("journal event", run.as_str(), error))
            })
            .transpose()
    }
}
