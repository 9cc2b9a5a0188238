//! Threads: conversations of which each run is one part.

use sea_orm::{
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, Set,
    sea_query::{Expr, OnConflict},
};

use super::{
    CallRecord, RunRecord, Store, StoreError, StoredMessage,
    entity::{calls, messages, runs, threads},
    rows,
};
use crate::call::Timestamp;

/// A thread to which a new run belongs.
#[derive(Clone, Debug)]
pub(crate) struct ThreadPlace {
    pub(crate) id: String,
    /// Whose thread it is; whoever uses it first owns it.
    pub(crate) owner: String,
    /// Whether the run only reads it.
    pub(crate) read_only: bool,
}

/// One run of a thread with all that was said in it.
pub(crate) struct Part {
    pub(crate) run: RunRecord,
    pub(crate) messages: Vec<StoredMessage>,
    pub(crate) calls: Vec<CallRecord>,
}

/// Gives a new run the next place in its thread, and makes the thread where there is none.
/// Writers of one thread go one after another.
pub(super) async fn take_place(
    tx: &impl ConnectionTrait,
    tenant: Option<&str>,
    place: &ThreadPlace,
    now: Timestamp,
) -> Result<Option<i64>, StoreError> {
    let tenant = tenant.unwrap_or_default();
    if !place.read_only {
        let new = threads::ActiveModel {
            tenant: Set(tenant.to_owned()),
            id: Set(place.id.clone()),
            owner: Set(place.owner.clone()),
            position: Set(0),
            created_at: Set(now.as_micros()),
        };
        let known = OnConflict::columns([threads::Column::Tenant, threads::Column::Id])
            .do_nothing_on([threads::Column::Tenant, threads::Column::Id])
            .to_owned();
        threads::Entity::insert(new)
            .on_conflict(known)
            .exec_without_returning(tx)
            .await
            .map_err(StoreError::while_trying("write a thread"))?;
    }
    let found = threads::Entity::find_by_id((tenant.to_owned(), place.id.clone()))
        .lock_exclusive()
        .one(tx)
        .await
        .map_err(StoreError::while_trying("read a thread"))?;
    let Some(found) = found else { return Ok(None) };
    if found.owner != place.owner {
        return Err(StoreError::ForeignThread {
            thread: place.id.clone(),
        });
    }
    if place.read_only {
        return Ok(None);
    }
    let position = found.position.saturating_add(1);
    threads::Entity::update_many()
        .col_expr(threads::Column::Position, Expr::value(position))
        .filter(threads::Column::Tenant.eq(tenant))
        .filter(threads::Column::Id.eq(place.id.as_str()))
        .exec(tx)
        .await
        .map_err(StoreError::while_trying("write a thread"))?;
    Ok(Some(position))
}

impl Store {
    /// The last place that is taken in a thread; none where there is no such thread of this
    /// owner.
    pub(crate) async fn thread_position(
        &self,
        tenant: Option<&str>,
        thread: &str,
        owner: &str,
    ) -> Result<Option<i64>, StoreError> {
        let key = (tenant.unwrap_or_default().to_owned(), thread.to_owned());
        let found = threads::Entity::find_by_id(key)
            .one(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read a thread"))?;
        match found {
            Some(found) if found.owner != owner => Err(StoreError::ForeignThread {
                thread: thread.to_owned(),
            }),
            found => Ok(found.map(|found| found.position)),
        }
    }

    /// The last runs of a thread before a place in it, oldest first.
    pub(crate) async fn thread(
        &self,
        tenant: Option<&str>,
        thread: &str,
        before: i64,
        most: u64,
    ) -> Result<Vec<Part>, StoreError> {
        let tenant = match tenant {
            Some(tenant) => runs::Column::Tenant.eq(tenant),
            None => runs::Column::Tenant.is_null(),
        };
        let found = runs::Entity::find()
            .filter(runs::Column::ThreadId.eq(thread))
            .filter(tenant)
            .filter(runs::Column::ThreadPosition.lt(before))
            .order_by_desc(runs::Column::ThreadPosition)
            .limit(most)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read a thread"))?;
        let mut parts = found
            .iter()
            .rev()
            .map(|row| {
                Ok(Part {
                    run: rows::run(row)?,
                    messages: Vec::new(),
                    calls: Vec::new(),
                })
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        let ids: Vec<_> = found.iter().map(|row| row.id.as_str()).collect();
        let said = messages::Entity::find()
            .filter(messages::Column::RunId.is_in(ids.iter().copied()))
            .order_by_asc(messages::Column::RunId)
            .order_by_asc(messages::Column::Sequence)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read messages"))?;
        for row in said {
            if let Some(part) = parts.iter_mut().find(|p| p.run.id.as_str() == row.run_id) {
                part.messages.push(rows::message(row)?);
            }
        }
        let made = calls::Entity::find()
            .filter(calls::Column::RunId.is_in(ids))
            .order_by_asc(calls::Column::RunId)
            .order_by_asc(calls::Column::Step)
            .order_by_asc(calls::Column::Position)
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read calls"))?;
        for row in &made {
            if let Some(part) = parts.iter_mut().find(|p| p.run.id.as_str() == row.run_id) {
                part.calls.push(rows::call(row)?);
            }
        }
        Ok(parts)
    }
}
