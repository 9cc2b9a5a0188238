use std::{collections::BTreeSet, time::Duration};

use agentkit_policy::FactScope;
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait as _, EntityTrait as _, Iterable as _, QueryFilter as _,
    Set, TryIntoModel as _,
};

use super::{
    CallRecord, GateRecord, Lease, RunRecord, Store, StoreError,
    attempt::{Attempt, attempt},
    entity::{calls, decisions},
    labels,
    past::{self, Look, Past, session_of},
    rows,
    run::Usage,
    transaction::RunTransaction,
};
use crate::{
    approval::{RecordedDecision, Verdict},
    call::{
        ActionDigest, CallEvent, CallId, CallState, Canonical, Digest, Fingerprint, Nonce,
        Principal, RunId, Timestamp,
    },
    journal::Event,
};

/// A call that the gate has decided about, to be written.
pub(crate) struct NewCall {
    pub(crate) id: CallId,
    pub(crate) provider_id: String,
    pub(crate) tool: String,
    /// What the gate decided: applied to `proposed`.
    pub(crate) event: CallEvent,
    pub(crate) binding: Option<Binding>,
    pub(crate) definition: Digest,
    pub(crate) gate: GateRecord,
    pub(crate) outcome: Option<String>,
    /// What the session takes on where the call is admitted.
    pub(crate) labels: BTreeSet<String>,
    pub(crate) events: Vec<Event>,
}

/// What a call is bound to from the moment it is gated.
#[derive(Clone)]
pub(crate) struct Binding {
    pub(crate) arguments: Canonical,
    pub(crate) definition: Digest,
    pub(crate) input_schema: Digest,
    pub(crate) policy_slice: Digest,
    pub(crate) action: ActionDigest,
    pub(crate) gate: GateRecord,
    pub(crate) ask: Option<Ask>,
}

/// One occasion on which people are asked.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) nonce: Nonce,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) quorum: u32,
    pub(crate) ttl: Duration,
}

/// One change of a call.
pub(crate) struct CallChange {
    pub(crate) event: CallEvent,
    /// Where what the call is bound to changes.
    pub(crate) binding: Option<Binding>,
    /// Where people are asked about what the call is bound to already.
    pub(crate) ask: Option<Ask>,
    /// Where the gate record changes and nothing else of the binding.
    pub(crate) gate: Option<GateRecord>,
    pub(crate) payload: Option<Canonical>,
    pub(crate) answer: Option<Canonical>,
    pub(crate) outcome: Option<String>,
    pub(crate) decision: Option<NewDecision>,
    /// What the user said that brings the change about, as a message, JSON.
    pub(crate) said: Option<String>,
    /// What the session takes on by it.
    pub(crate) labels: BTreeSet<String>,
    pub(crate) events: Vec<Event>,
}

impl CallChange {
    pub(crate) fn new(event: CallEvent) -> Self {
        Self {
            event,
            binding: None,
            ask: None,
            gate: None,
            payload: None,
            answer: None,
            outcome: None,
            decision: None,
            said: None,
            labels: BTreeSet::new(),
            events: Vec::new(),
        }
    }
}

pub(crate) struct NewDecision {
    pub(crate) approver: Principal,
    pub(crate) verdict: Verdict,
    pub(crate) fingerprint: Fingerprint,
}

/// A decision of one approver on one occasion.
#[derive(Clone, Debug)]
pub(crate) struct StoredDecision {
    pub(crate) nonce: Nonce,
    pub(crate) approver: Principal,
    pub(crate) decision: RecordedDecision,
}

/// What stands in the database at the moment of a change, read in the same transaction.
pub(crate) struct Facts {
    pub(crate) run: RunRecord,
    pub(crate) call: CallRecord,
    /// All decisions about the call, of earlier occasions too.
    pub(crate) decisions: Vec<StoredDecision>,
    pub(crate) now: Timestamp,
    /// The calls that were looked for.
    pub(crate) past: Past,
}

impl Facts {
    /// The decisions of the present occasion.
    pub(crate) fn current(&self) -> impl Iterator<Item = &StoredDecision> {
        self.decisions
            .iter()
            .filter(|stored| Some(stored.nonce) == self.call.nonce)
    }
}

fn bytes(digest: &Digest) -> Vec<u8> {
    digest.as_bytes().to_vec()
}

/// PostgreSQL has no character of number 0, and what a model or a tool wrote must not keep its call
/// from being recorded.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn gate_text(call: &str, gate: &GateRecord) -> Result<String, StoreError> {
    serde_json::to_string(gate).map_err(|error| StoreError::corrupt("gate record", call, error))
}

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Writes what a call is bound to into its row.
fn bind(
    row: &mut calls::ActiveModel,
    binding: &Binding,
    now: Timestamp,
    id: &str,
) -> Result<(), StoreError> {
    row.arguments = Set(Some(binding.arguments.to_string()));
    row.definition = Set(bytes(&binding.definition));
    row.input_schema = Set(Some(bytes(&binding.input_schema)));
    row.policy_slice = Set(Some(bytes(&binding.policy_slice)));
    row.action = Set(Some(bytes(binding.action.digest())));
    row.gate = Set(gate_text(id, &binding.gate)?);
    if let Some(ask) = &binding.ask {
        set_ask(row, ask, now);
    }
    Ok(())
}

fn set_ask(row: &mut calls::ActiveModel, ask: &Ask, now: Timestamp) {
    row.nonce = Set(Some(ask.nonce.as_bytes().to_vec()));
    row.fingerprint = Set(Some(bytes(ask.fingerprint.digest())));
    row.quorum = Set(number(ask.quorum));
    row.requested_at = Set(Some(now.as_micros()));
    row.expires_at = Set(Some(now.saturating_add(ask.ttl).as_micros()));
}

impl Store {
    /// Writes the model's answer of a step with its calls, all in one transaction: a call is a
    /// durable row before anyone is told about it. `gate` says of each call what becomes of it,
    /// given the earlier calls that are to be looked for, and is asked again where the transaction
    /// has to be tried again.
    pub(crate) async fn record_step(
        &self,
        lease: &Lease,
        message: &str,
        calls: &[Vec<Look>],
        mut gate: impl FnMut(usize, &Past, Timestamp) -> Result<NewCall, StoreError> + Send,
        usage: Usage,
        events: &[Event],
    ) -> Result<Vec<CallRecord>, StoreError> {
        attempt!(self, |attempt| attempt
            .try_record_step(lease, message, calls, &mut gate, usage, events))
    }

    /// Notes, as the holder of the lease, that listeners were told of the ends of calls.
    pub(crate) async fn told(&self, lease: &Lease, calls: &[CallId]) -> Result<(), StoreError> {
        attempt!(self, |attempt| attempt.try_told(lease, calls))
    }

    /// The tool of a call.
    pub(crate) async fn tool_of(&self, call: &CallId) -> Result<Option<String>, StoreError> {
        calls::Entity::find_by_id(call.as_str())
            .one(&self.inner.reader)
            .await
            .map(|found| found.map(|row| row.tool))
            .map_err(StoreError::while_trying("read a call"))
    }

    /// All decisions about one call, of earlier occasions too.
    pub(crate) async fn decisions(&self, call: &CallId) -> Result<Vec<StoredDecision>, StoreError> {
        let found = decisions::Entity::find()
            .filter(decisions::Column::CallId.eq(call.as_str()))
            .all(&self.inner.reader)
            .await
            .map_err(StoreError::while_trying("read decisions"))?;
        found.iter().map(rows::decision).collect()
    }

    /// Changes one call: reads what stands, lets `decide` say what is to happen, and writes it,
    /// all in one transaction. With a lease, only as its holder.
    ///
    /// `decide` returns nothing where nothing is to change; its errors undo the transaction. It is
    /// asked again where the transaction has to be tried again.
    pub(crate) async fn change_call<E: From<StoreError>>(
        &self,
        run: &RunId,
        holder: Option<&Lease>,
        call: &CallId,
        decide: impl FnMut(&Facts) -> Result<Option<CallChange>, E>,
    ) -> Result<Facts, E> {
        self.change_call_knowing(run, holder, call, &[], decide)
            .await
    }

    /// The same, with the earlier calls that are to be looked for.
    pub(crate) async fn change_call_knowing<E: From<StoreError>>(
        &self,
        run: &RunId,
        holder: Option<&Lease>,
        call: &CallId,
        looks: &[Look],
        mut decide: impl FnMut(&Facts) -> Result<Option<CallChange>, E>,
    ) -> Result<Facts, E> {
        attempt!(self, |attempt| attempt.try_change(
            run,
            holder,
            call,
            looks,
            &mut decide
        ))?
    }
}

impl Attempt {
    async fn try_record_step(
        &self,
        lease: &Lease,
        message: &str,
        calls: &[Vec<Look>],
        gate: &mut (impl FnMut(usize, &Past, Timestamp) -> Result<NewCall, StoreError> + Send),
        usage: Usage,
        events: &[Event],
    ) -> Result<Vec<CallRecord>, StoreError> {
        let mut transaction = RunTransaction::begin_held(self, lease).await?;
        let run = rows::run(&transaction.row)?;
        past::lock(&mut transaction, &run, &calls.concat()).await?;
        let now = transaction.now;
        let step = transaction.row.step.saturating_add(1);
        transaction.changes.step = Set(step);
        transaction.use_tokens(usage);
        transaction
            .say(&lease.run, step, message.to_owned())
            .await?;
        for event in events {
            transaction.append(event)?;
        }
        let mut records = Vec::with_capacity(calls.len());
        for (index, looks) in calls.iter().enumerate() {
            // With the calls of this step before it.
            let past = past::read(&transaction, &run, None, looks).await?;
            let call = gate(index, &past, now)?;
            let position = i32::try_from(index).unwrap_or(i32::MAX);
            let id = call.id.as_str();
            let state = CallState::Proposed
                .after(call.event)
                .map_err(|error| StoreError::corrupt("state", id, error))?;
            let mut row = calls::ActiveModel {
                id: Set(id.to_owned()),
                run_id: Set(lease.run.to_string()),
                step: Set(step),
                position: Set(position),
                provider_id: Set(storable(&call.provider_id)),
                tool: Set(storable(&call.tool)),
                state: Set(state.as_str().to_owned()),
                version: Set(1),
                arguments: Set(None),
                definition: Set(bytes(&call.definition)),
                input_schema: Set(None),
                policy_slice: Set(None),
                action: Set(None),
                nonce: Set(None),
                fingerprint: Set(None),
                gate: Set(gate_text(id, &call.gate)?),
                quorum: Set(0),
                requested_at: Set(None),
                expires_at: Set(None),
                payload: Set(None),
                answer: Set(None),
                outcome: Set(call.outcome.as_deref().map(storable)),
                epoch: Set(None),
                untold: Set(false),
                root_id: Set(run.root.to_string()),
                session: Set(session_of(&run).to_owned()),
                requester_id: Set(run.requester.id.clone()),
                tenant: Set(run.requester.tenant.clone().unwrap_or_default()),
                admitted_at: Set(now.as_micros()),
                created_at: Set(now.as_micros()),
                updated_at: Set(now.as_micros()),
            };
            if let Some(binding) = &call.binding {
                bind(&mut row, binding, now, id)?;
            }
            let row = insert_call(&transaction, row).await?;
            if !state.is_final() {
                take_on(&mut transaction, &run, &call.id, &call.labels).await?;
            }
            for event in &call.events {
                transaction.append(event)?;
            }
            let record = rows::call(&row)?;
            append_request(&mut transaction, &record)?;
            records.push(record);
        }
        transaction.commit().await?;
        Ok(records)
    }

    async fn try_told(&self, lease: &Lease, calls: &[CallId]) -> Result<(), StoreError> {
        let transaction = RunTransaction::begin_held(self, lease).await?;
        calls::Entity::update_many()
            .set(calls::ActiveModel {
                untold: Set(false),
                ..Default::default()
            })
            .filter(calls::Column::RunId.eq(lease.run.as_str()))
            .filter(calls::Column::Id.is_in(calls.iter().map(CallId::as_str)))
            .exec(transaction.tx())
            .await
            .map_err(StoreError::while_trying("change calls"))?;
        transaction.commit().await
    }

    async fn try_change<E>(
        &self,
        run: &RunId,
        holder: Option<&Lease>,
        call: &CallId,
        looks: &[Look],
        decide: &mut impl FnMut(&Facts) -> Result<Option<CallChange>, E>,
    ) -> Result<Result<Facts, E>, StoreError> {
        let mut transaction = match holder {
            Some(lease) => RunTransaction::begin_held(self, lease).await?,
            None => RunTransaction::begin(self, run).await?,
        };
        if !looks.is_empty() {
            let run = rows::run(&transaction.row)?;
            past::lock(&mut transaction, &run, looks).await?;
        }
        let (mut facts, row) = read_facts(&transaction, call, looks).await?;
        match decide(&facts) {
            Err(error) => return Ok(Err(error)),
            Ok(None) => {}
            Ok(Some(change)) => {
                write_change(&mut transaction, holder, &mut facts, row, change).await?;
                if holder.is_none() && !facts.call.state.needs_person() {
                    transaction.wake().await?;
                }
                transaction.commit().await?;
            }
        }
        Ok(Ok(facts))
    }
}

/// Lets a run's session take on what a call brings.
async fn take_on(
    transaction: &mut RunTransaction,
    run: &RunRecord,
    call: &CallId,
    added: &BTreeSet<String>,
) -> Result<(), StoreError> {
    if added.is_empty() {
        return Ok(());
    }
    let session = past::scope_id(FactScope::Session, run);
    labels::add(transaction.tx(), &session, call, added, transaction.now).await?;
    transaction.append(&Event::Labelled {
        call: call.clone(),
        labels: added.iter().cloned().collect(),
    })
}

async fn insert_call(
    transaction: &RunTransaction,
    row: calls::ActiveModel,
) -> Result<calls::Model, StoreError> {
    let written = row
        .clone()
        .try_into_model()
        .map_err(StoreError::while_trying("write a call"))?;
    calls::Entity::insert(row)
        .exec_without_returning(transaction.tx())
        .await
        .map_err(StoreError::while_trying("write a call"))?;
    Ok(written)
}

async fn read_facts(
    transaction: &RunTransaction,
    call: &CallId,
    looks: &[Look],
) -> Result<(Facts, calls::Model), StoreError> {
    let row = calls::Entity::find_by_id(call.as_str())
        .filter(calls::Column::RunId.eq(transaction.row.id.as_str()))
        .one(transaction.tx())
        .await
        .map_err(StoreError::while_trying("read a call"))?
        .ok_or_else(|| StoreError::UnknownCall {
            run: transaction.row.id.clone(),
            call: call.to_string(),
        })?;
    let decisions = decisions::Entity::find()
        .filter(decisions::Column::CallId.eq(call.as_str()))
        .all(transaction.tx())
        .await
        .map_err(StoreError::while_trying("read decisions"))?;
    let run = rows::run(&transaction.row)?;
    let past = past::read(transaction, &run, Some(call), looks).await?;
    let facts = Facts {
        run,
        past,
        call: rows::call(&row)?,
        decisions: decisions
            .iter()
            .map(rows::decision)
            .collect::<Result<_, _>>()?,
        now: transaction.now,
    };
    Ok((facts, row))
}

async fn write_change(
    transaction: &mut RunTransaction,
    holder: Option<&Lease>,
    facts: &mut Facts,
    before: calls::Model,
    change: CallChange,
) -> Result<(), StoreError> {
    let (call, now) = (&facts.call, facts.now);
    let state = call
        .state
        .after(change.event)
        .map_err(|error| StoreError::corrupt("state", call.id.as_str(), error))?;
    let mut row = calls::ActiveModel {
        state: Set(state.as_str().to_owned()),
        version: Set(call.version.saturating_add(1)),
        untold: Set(holder.is_none() && state.is_final()),
        updated_at: Set(now.as_micros()),
        ..Default::default()
    };
    if let Some(binding) = &change.binding {
        bind(&mut row, binding, now, call.id.as_str())?;
    }
    if let Some(ask) = &change.ask {
        set_ask(&mut row, ask, now);
    }
    if let Some(gate) = &change.gate {
        row.gate = Set(gate_text(call.id.as_str(), gate)?);
    }
    if let Some(payload) = &change.payload {
        row.payload = Set(Some(payload.to_string()));
    }
    if let Some(answer) = &change.answer {
        row.answer = Set(Some(answer.to_string()));
    }
    if let Some(outcome) = change.outcome {
        row.outcome = Set(Some(storable(&outcome)));
    }
    if change.event == CallEvent::Start {
        row.epoch = Set(holder.map(|lease| lease.epoch));
    }
    if matches!(change.event, CallEvent::Start | CallEvent::Delegate) {
        row.admitted_at = Set(now.as_micros());
    }
    let changed = calls::Entity::update_many()
        .set(row.clone())
        .filter(calls::Column::Id.eq(call.id.as_str()))
        .filter(calls::Column::State.eq(call.state.as_str()))
        .filter(calls::Column::Version.eq(call.version))
        .exec(transaction.tx())
        .await
        .map_err(StoreError::while_trying("change a call"))?;
    if changed.rows_affected != 1 {
        return Err(StoreError::Conflict {
            call: call.id.to_string(),
        });
    }
    if let Some(decision) = change.decision {
        let nonce = call.nonce.ok_or_else(|| {
            StoreError::corrupt(
                "nonce",
                call.id.as_str(),
                "a decision about nothing that was asked",
            )
        })?;
        insert_decision(transaction, call, nonce, &decision).await?;
    }
    if let Some(said) = change.said {
        let run = call.run.clone();
        transaction.say(&run, number(call.step), said).await?;
    }
    for event in &change.events {
        transaction.append(event)?;
    }
    take_on(transaction, &facts.run, &facts.call.id, &change.labels).await?;
    let record = rows::call(&changed_row(before, &row)?)?;
    let asked = change.ask.is_some() || change.binding.is_some_and(|binding| binding.ask.is_some());
    if asked {
        append_request(transaction, &record)?;
    }
    facts.call = record;
    Ok(())
}

/// The row as it is after a change, without reading it again.
fn changed_row(
    before: calls::Model,
    change: &calls::ActiveModel,
) -> Result<calls::Model, StoreError> {
    let mut after: calls::ActiveModel = before.into();
    for column in calls::Column::iter() {
        if let Set(value) = change.get(column) {
            after.set(column, value);
        }
    }
    after
        .try_into_model()
        .map_err(StoreError::while_trying("change a call"))
}

/// Journals that people are asked about a call, where they are.
fn append_request(transaction: &mut RunTransaction, call: &CallRecord) -> Result<(), StoreError> {
    let (Some(fingerprint), Some(expires_at)) = (call.fingerprint, call.expires_at) else {
        return Ok(());
    };
    transaction.append(&Event::ApprovalRequested {
        call: call.id.clone(),
        fingerprint,
        quorum: call.quorum,
        expires_at,
    })
}

async fn insert_decision(
    transaction: &RunTransaction,
    call: &CallRecord,
    nonce: Nonce,
    decision: &NewDecision,
) -> Result<(), StoreError> {
    let approver = serde_json::to_string(&decision.approver)
        .map_err(|error| StoreError::corrupt("approver", call.id.as_str(), error))?;
    let row = decisions::ActiveModel {
        call_id: Set(call.id.to_string()),
        nonce: Set(nonce.as_bytes().to_vec()),
        approver_id: Set(decision.approver.id.clone()),
        kind: Set(decision.verdict.kind().as_str().to_owned()),
        fingerprint: Set(bytes(decision.fingerprint.digest())),
        approver: Set(approver),
        reason: Set(decision.verdict.reason().map(storable)),
        content: Set(decision.verdict.content()),
        decided_at: Set(transaction.now.as_micros()),
    };
    decisions::Entity::insert(row)
        .exec_without_returning(transaction.tx())
        .await
        .map(|_| ())
        .map_err(StoreError::while_trying("record a decision"))
}
