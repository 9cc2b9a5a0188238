//! Between rows and records. Every row is hostile until it has been read here.

use super::{
    CallRecord, ParentCall, RunRecord, StoreError, StoredDecision, StoredMessage,
    entity::{calls, decisions, journal, messages, runs},
    migration::FORMAT,
};
use crate::{
    approval::{DecisionKind, RecordedDecision},
    call::{Canonical, Digest, Nonce, RunSecret, Timestamp},
    journal::{ChainHead, Entry},
};

fn fixed<const N: usize>(
    what: &'static str,
    id: &str,
    bytes: &[u8],
) -> Result<[u8; N], StoreError> {
    bytes
        .try_into()
        .map_err(|_| StoreError::corrupt(what, id, format!("{} bytes instead of {N}", bytes.len())))
}

pub(super) fn digest(what: &'static str, id: &str, bytes: &[u8]) -> Result<Digest, StoreError> {
    fixed(what, id, bytes).map(Digest::from_bytes)
}

pub(super) fn optional_digest(
    what: &'static str,
    id: &str,
    bytes: Option<&Vec<u8>>,
) -> Result<Option<Digest>, StoreError> {
    bytes.map(|bytes| digest(what, id, bytes)).transpose()
}

pub(super) fn count(what: &'static str, id: &str, number: i32) -> Result<u32, StoreError> {
    u32::try_from(number).map_err(|error| StoreError::corrupt(what, id, error))
}

fn canonical(
    what: &'static str,
    id: &str,
    text: Option<&String>,
) -> Result<Option<Canonical>, StoreError> {
    text.map(|text| {
        Canonical::from_stored(text.as_str()).map_err(|error| StoreError::corrupt(what, id, error))
    })
    .transpose()
}

pub(super) fn head(row: &runs::Model) -> Result<ChainHead, StoreError> {
    Ok(ChainHead {
        sequence: row.journal_sequence,
        digest: optional_digest("journal head", &row.id, row.journal_head.as_ref())?,
    })
}

pub(super) fn run(row: &runs::Model) -> Result<RunRecord, StoreError> {
    let id = row.id.as_str();
    let corrupt = |what| {
        move |error: &dyn std::fmt::Display| StoreError::corrupt(what, id, error.to_string())
    };
    if row.format > FORMAT {
        return Err(StoreError::Newer {
            found: format!("run format {}", row.format),
        });
    }
    Ok(RunRecord {
        id: row.id.parse().map_err(|error| corrupt("id")(&error))?,
        root: row
            .root_id
            .parse()
            .map_err(|error| corrupt("root")(&error))?,
        parent: parent(row)?,
        path: serde_json::from_str(&row.path).map_err(|error| corrupt("path")(&error))?,
        agent: row.agent.clone(),
        definition: digest("definition digest", id, &row.definition)?,
        status: row
            .status
            .parse()
            .map_err(|error| corrupt("status")(&error))?,
        ending: row.ending.clone(),
        woken: row.wake_at.is_some(),
        cancelled: row.cancelled_at.map(Timestamp::from_micros),
        thread: row.thread_id.clone(),
        thread_position: row.thread_position,
        requester: serde_json::from_str(&row.requester)
            .map_err(|error| corrupt("requester")(&error))?,
        secret: RunSecret::from_bytes(fixed("secret", id, &row.secret)?),
        options: row.options.clone(),
        step: count("step", id, row.step)?,
        tokens: unsigned(row.input_tokens).saturating_add(unsigned(row.output_tokens)),
        worked: std::time::Duration::from_micros(unsigned(row.worked)),
        error: row.error.clone(),
        created_at: Timestamp::from_micros(row.created_at),
    })
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn parent(row: &runs::Model) -> Result<Option<ParentCall>, StoreError> {
    let corrupt = |error| StoreError::corrupt("parent", &row.id, error);
    match (&row.parent_id, &row.parent_call) {
        (Some(run), Some(call)) => Ok(Some(ParentCall::new(
            run.parse().map_err(corrupt)?,
            call.parse().map_err(corrupt)?,
        ))),
        (None, None) => Ok(None),
        _ => Err(StoreError::corrupt(
            "parent",
            &row.id,
            "half of it is missing",
        )),
    }
}

pub(super) fn call(row: &calls::Model) -> Result<CallRecord, StoreError> {
    let id = row.id.as_str();
    let corrupt = |what| {
        move |error: &dyn std::fmt::Display| StoreError::corrupt(what, id, error.to_string())
    };
    let nonce = row
        .nonce
        .as_ref()
        .map(|bytes| fixed("nonce", id, bytes))
        .transpose()?;
    Ok(CallRecord {
        id: row.id.parse().map_err(|error| corrupt("id")(&error))?,
        run: row
            .run_id
            .parse()
            .map_err(|error| corrupt("run id")(&error))?,
        step: count("step", id, row.step)?,
        position: count("position", id, row.position)?,
        provider_id: row.provider_id.clone(),
        tool: row.tool.clone(),
        state: row
            .state
            .parse()
            .map_err(|error| corrupt("state")(&error))?,
        version: row.version,
        arguments: canonical("arguments", id, row.arguments.as_ref())?,
        definition: digest("definition digest", id, &row.definition)?,
        input_schema: optional_digest("schema digest", id, row.input_schema.as_ref())?,
        policy_slice: optional_digest("policy digest", id, row.policy_slice.as_ref())?,
        action: optional_digest("action digest", id, row.action.as_ref())?.map(Into::into),
        nonce: nonce.map(Nonce::from_bytes),
        fingerprint: optional_digest("fingerprint", id, row.fingerprint.as_ref())?.map(Into::into),
        gate: serde_json::from_str(&row.gate).map_err(|error| corrupt("gate record")(&error))?,
        quorum: count("quorum", id, row.quorum)?,
        requested_at: row.requested_at.map(Timestamp::from_micros),
        expires_at: row.expires_at.map(Timestamp::from_micros),
        payload: canonical("payload", id, row.payload.as_ref())?,
        answer: canonical("answer", id, row.answer.as_ref())?,
        outcome: row.outcome.clone(),
        epoch: row.epoch,
        untold: row.untold,
    })
}

pub(super) fn message(row: messages::Model) -> Result<StoredMessage, StoreError> {
    Ok(StoredMessage {
        sequence: count("sequence", &row.run_id, row.sequence)?,
        step: count("step", &row.run_id, row.step)?,
        body: row.body,
    })
}

pub(super) fn decision(row: &decisions::Model) -> Result<StoredDecision, StoreError> {
    let id = row.call_id.as_str();
    let kind = DecisionKind::parse(&row.kind)
        .ok_or_else(|| StoreError::corrupt("decision", id, format!("kind `{}`", row.kind)))?;
    Ok(StoredDecision {
        nonce: Nonce::from_bytes(fixed("nonce", id, &row.nonce)?),
        approver: serde_json::from_str(&row.approver)
            .map_err(|error| StoreError::corrupt("approver", id, error))?,
        decision: RecordedDecision::new(
            kind,
            row.approver_id.clone(),
            Timestamp::from_micros(row.decided_at),
            digest("fingerprint", id, &row.fingerprint)?.into(),
            row.reason.clone(),
            row.content.clone(),
        ),
    })
}

pub(super) fn entry(row: &journal::Model) -> Result<Entry, StoreError> {
    let id = row.run_id.as_str();
    let body = Canonical::from_stored(row.body.as_str())
        .map_err(|error| StoreError::corrupt("journal event", id, error))?;
    Ok(Entry::new(
        row.sequence,
        Timestamp::from_micros(row.created_at),
        body,
        optional_digest("journal digest", id, row.previous.as_ref())?,
        digest("journal digest", id, &row.digest)?,
    ))
}

/// A decision with the id of the call that it is about.
pub(super) fn decision_of(row: &decisions::Model) -> Result<(String, StoredDecision), StoreError> {
    Ok((row.call_id.clone(), decision(row)?))
}
