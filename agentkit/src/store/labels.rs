//! Labels of a session: what it has touched, such as `secret` or `untrusted`. They are added when a
//! call is admitted whose tool declares them, and when a call ends that took them on; they are
//! never removed. A session is a thread, or a run with everything below it, so those below start
//! with what is above them and what they take on is there for all.

use std::collections::BTreeSet;

use sea_orm::{
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QuerySelect as _, Set,
    sea_query::OnConflict,
};

use super::{StoreError, entity::labels};
use crate::call::{CallId, Digest, Timestamp};

/// Of how many calls a label is kept.
const KEPT: usize = 2;

/// Adds what a call brings.
pub(super) async fn add(
    tx: &impl ConnectionTrait,
    session: &Digest,
    call: &CallId,
    added: impl IntoIterator<Item = &String>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let scope = session.as_bytes();
    for label in added {
        let known = labels::Entity::find()
            .filter(labels::Column::Scope.eq(scope.as_slice()))
            .filter(labels::Column::Label.eq(label.as_str()))
            .all(tx)
            .await
            .map_err(StoreError::while_trying("read labels"))?;
        if known.len() >= KEPT || known.iter().any(|known| known.call_id == call.as_str()) {
            continue;
        }
        let new = labels::ActiveModel {
            scope: Set(scope.to_vec()),
            label: Set(label.clone()),
            call_id: Set(call.to_string()),
            added_at: Set(now.as_micros()),
        };
        let key = [
            labels::Column::Scope,
            labels::Column::Label,
            labels::Column::CallId,
        ];
        let known = OnConflict::columns(key).do_nothing_on(key).to_owned();
        labels::Entity::insert(new)
            .on_conflict(known)
            .exec_without_returning(tx)
            .await
            .map_err(StoreError::while_trying("write labels"))?;
    }
    Ok(())
}

/// What a session has taken on by other calls than this one.
pub(super) async fn beside(
    connection: &impl ConnectionTrait,
    session: &Digest,
    call: Option<&CallId>,
) -> Result<BTreeSet<String>, StoreError> {
    let mut found = labels::Entity::find()
        .select_only()
        .column(labels::Column::Label)
        .distinct()
        .filter(labels::Column::Scope.eq(session.as_bytes().as_slice()));
    if let Some(call) = call {
        found = found.filter(labels::Column::CallId.ne(call.as_str()));
    }
    let found: Vec<String> = found
        .into_tuple()
        .all(connection)
        .await
        .map_err(StoreError::while_trying("read labels"))?;
    Ok(found.into_iter().collect())
}
