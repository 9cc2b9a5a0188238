//! What this runtime hands to policies as `context.session`.
//!
//! All facts that there are, always present and declared, in the transaction in which the gate is
//! asked. What cannot be computed for one call, as where arguments were erased, denies the call.

use std::collections::BTreeSet;

use agentkit_policy::{
    AttributeType, AttributeValue, Distinct, FactDeclaration, FactKind, FactScope, PolicySet,
    Question, ReadFact, SameArguments, SessionFacts, ValuePath,
};
use serde_json::Value;

use super::{Runtime, question::Moment};
use crate::{
    call::{CallState, Timestamp},
    store::{CallsLook, Look, PastCall, StoreError, before, session_of},
};

/// The most values that a fact collects.
const VALUES: usize = 1000;

fn counts_approvers(kind: &FactKind) -> bool {
    matches!(
        kind,
        FactKind::DistinctOk {
            of: Distinct::Approvers { .. }
        }
    )
}

impl Runtime {
    /// The earlier calls that the policies about a tool have to know of.
    pub(super) fn looks(&self, tool: &str) -> Vec<Look> {
        let mut looks = Vec::new();
        for policy in self.policies() {
            for fact in policy.session_facts(tool, &Question::ALL) {
                if let Some(look) = look(&fact, tool)
                    && !looks.contains(&look)
                {
                    looks.push(look);
                }
            }
        }
        looks
    }
}

fn look(fact: &ReadFact<'_>, tool: &str) -> Option<Look> {
    let Some(declared) = fact.declaration else {
        return match fact.name {
            "labels" => Some(Look::Labels),
            "turn" | "calls_since_user" | "started_at" => Some(Look::Conversation),
            name => name.starts_with("this.").then(|| {
                Look::Calls(CallsLook {
                    scope: FactScope::Session,
                    tools: vec![tool.to_owned()],
                    window: None,
                    approvers: false,
                })
            }),
        };
    };
    let mut tools = declared.tools.clone();
    if let FactKind::Unspent { uses } = &declared.kind {
        tools.extend(uses.iter().cloned());
    }
    Some(Look::Calls(CallsLook {
        scope: declared.scope,
        tools: tools.into_iter().collect(),
        window: declared.window.last(),
        approvers: counts_approvers(&declared.kind),
    }))
}

/// A value; none where the fact is absent; an error where it cannot be told.
type Computed = Result<Option<AttributeValue>, &'static str>;

const ERASED: &str = "the content of an earlier call that counts was erased";
const TOO_LARGE: &str = "the fact is larger than can be handed in";

fn count(number: usize) -> Computed {
    let number = i64::try_from(number).map_err(|_| TOO_LARGE)?;
    Ok(Some(AttributeValue::Long(number)))
}

fn time(last: Option<Timestamp>) -> Option<AttributeValue> {
    last.map(|last| AttributeValue::time(last.as_micros()))
}

fn admitted(call: &PastCall, since: Timestamp) -> bool {
    let ran = matches!(call.state, CallState::Succeeded | CallState::Failed);
    call.in_flight() || (ran && call.admitted_at >= since)
}

fn ended(call: &PastCall, state: CallState, since: Timestamp) -> bool {
    call.state == state && call.updated_at >= since
}

fn value_at(call: &PastCall, path: &ValuePath) -> Result<Option<Value>, &'static str> {
    let (text, path) = match path {
        ValuePath::Input(path) => (&call.arguments, path),
        ValuePath::Output(path) => (&call.outcome, path),
    };
    let text = text.as_deref().ok_or(ERASED)?;
    let value: Value = serde_json::from_str(text).map_err(|_| ERASED)?;
    Ok(ValuePath::value_at(path, &value).cloned())
}

fn sum<'a>(calls: impl Iterator<Item = &'a PastCall>, path: &ValuePath) -> Computed {
    let mut sum = 0_i64;
    for call in calls {
        let number = match value_at(call, path)? {
            Some(Value::Number(number)) => number.as_i64().ok_or(TOO_LARGE)?,
            // An argument that was left out, or an output of another form.
            _ => 0,
        };
        sum = sum.checked_add(number).ok_or(TOO_LARGE)?;
    }
    Ok(Some(AttributeValue::Long(sum)))
}

fn values<'a>(
    calls: impl Iterator<Item = &'a PastCall>,
    path: &ValuePath,
    of: AttributeType,
) -> Computed {
    let (mut texts, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for call in calls {
        match value_at(call, path)? {
            Some(Value::String(text)) => {
                texts.insert(text);
            }
            Some(Value::Number(number)) => numbers.extend(number.as_i64()),
            _ => {}
        }
    }
    if texts.len().max(numbers.len()) > VALUES {
        return Err(TOO_LARGE);
    }
    Ok(Some(if of == AttributeType::Long {
        AttributeValue::Longs(numbers)
    } else {
        AttributeValue::Strings(texts)
    }))
}

fn distinct<'a>(calls: impl Iterator<Item = &'a PastCall>, path: &ValuePath) -> Computed {
    let mut texts = BTreeSet::new();
    for call in calls {
        texts.extend(value_at(call, path)?.map(|value| value.to_string()));
    }
    count(texts.len())
}

fn approvers<'a>(calls: impl Iterator<Item = &'a PastCall>, excluding_requester: bool) -> Computed {
    let mut people = BTreeSet::new();
    for call in calls {
        let counts = |id: &&String| !(excluding_requester && **id == call.requester);
        people.extend(call.approvers.iter().filter(counts));
    }
    count(people.len())
}

impl Moment<'_> {
    /// The facts of a call that policies read.
    ///
    /// # Errors
    ///
    /// When policies were loaded since the past was read that need more of it: the whole has to be
    /// tried again.
    pub(super) fn session(&self, policy: &PolicySet) -> Result<SessionFacts, StoreError> {
        let run = self.run;
        let above = run.path.len().saturating_sub(1);
        let mut facts = SessionFacts::new()
            .set("id", session_of(run))
            .set("agent", run.agent.as_str())
            .set("depth", i64::try_from(above).unwrap_or(i64::MAX));
        for fact in policy.session_facts(self.tool, &Question::ALL) {
            let Some(look) = look(&fact, self.tool) else {
                continue;
            };
            if !self.past.looks.contains(&look) {
                return Err(StoreError::Busy);
            }
            let value = match fact.declaration {
                Some(declared) => self.declared(declared),
                None => self.always(fact.name),
            };
            match value {
                Ok(Some(value)) => facts.insert(fact.name, value),
                Ok(None) => {}
                // Of no type that such a fact has: the call is denied, and says why.
                Err(why) => facts.insert(fact.name, AttributeValue::String(why.to_owned())),
            }
        }
        Ok(facts)
    }

    fn in_scope(&self, call: &PastCall, scope: FactScope) -> bool {
        match scope {
            FactScope::RunTree => call.root == self.run.root.as_str(),
            FactScope::Session => call.session == session_of(self.run),
            FactScope::Principal => call.requester == self.run.requester.id,
            // No other is read.
            FactScope::Tenant => true,
        }
    }

    fn is_same(&self, call: &PastCall, same: &SameArguments) -> Result<bool, &'static str> {
        let paths = match same {
            SameArguments::Any => return Ok(true),
            SameArguments::All => {
                let arguments = call.arguments.as_deref().ok_or(ERASED)?;
                return Ok(arguments == self.arguments.as_str());
            }
            SameArguments::Paths(paths) => paths,
        };
        let own = self.arguments.to_value().map_err(|_| ERASED)?;
        for path in paths {
            let theirs = value_at(call, &ValuePath::Input(path.clone()))?;
            if theirs.as_ref() != ValuePath::value_at(path, &own) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn declared(&self, fact: &FactDeclaration) -> Computed {
        let since = fact
            .window
            .last()
            .map_or(Timestamp::from_micros(i64::MIN), |window| {
                before(self.now, window)
            });
        let mut calls = Vec::new();
        let mut spent = 0;
        for call in &self.past.calls {
            let spends =
                matches!(&fact.kind, FactKind::Unspent { uses } if uses.contains(&call.tool));
            let counts = fact.tools.contains(&call.tool) || spends;
            if !counts || !self.in_scope(call, fact.scope) {
                continue;
            }
            // What could not be decoded never counts, and has no arguments to compare.
            let undecoded = call.state == CallState::Denied && call.arguments.is_none();
            if undecoded || !self.is_same(call, &fact.same)? {
                continue;
            }
            if spends && call.state != CallState::Failed && admitted(call, since) {
                spent += 1;
            }
            if fact.tools.contains(&call.tool) {
                calls.push(call);
            }
        }
        let of = |state| calls.iter().filter(move |call| ended(call, state, since));
        let ok = || of(CallState::Succeeded).copied();
        let (failed, denied) = (of(CallState::Failed), of(CallState::Denied));
        let admitted = || calls.iter().copied().filter(|call| admitted(call, since));
        match &fact.kind {
            FactKind::CountAdmitted => count(admitted().count()),
            FactKind::SumAdmitted { path } => sum(admitted(), path),
            FactKind::LastAdmittedAt => Ok(time(admitted().map(|call| call.admitted_at).max())),
            FactKind::ExistsAdmitted => Ok(Some(AttributeValue::Bool(admitted().count() > 0))),
            FactKind::InFlight => count(calls.iter().filter(|call| call.in_flight()).count()),
            FactKind::CountOk => count(ok().count()),
            FactKind::ExistsOk => Ok(Some(AttributeValue::Bool(ok().count() > 0))),
            FactKind::LastOkAt => Ok(time(ok().map(|call| call.updated_at).max())),
            FactKind::ValuesOk { path, of } => values(ok(), path, *of),
            FactKind::DistinctOk {
                of: Distinct::Values(path),
            } => distinct(ok(), path),
            FactKind::DistinctOk {
                of: Distinct::Approvers {
                    excluding_requester,
                },
            } => approvers(ok(), *excluding_requester),
            FactKind::SumOk { path } => sum(ok(), path),
            FactKind::CountFailed => count(failed.count()),
            FactKind::CountDenied => count(denied.count()),
            FactKind::CountFailedOrDenied => count(failed.chain(denied).count()),
            FactKind::LastFailedAt => Ok(time(failed.map(|call| call.updated_at).max())),
            FactKind::Unspent { .. } => {
                let granted = i64::try_from(ok().count()).map_err(|_| TOO_LARGE)?;
                Ok(Some(AttributeValue::Long(granted - spent)))
            }
            _ => Err("the runtime does not compute this fact"),
        }
    }

    fn always(&self, name: &str) -> Computed {
        let own = || {
            self.past
                .calls
                .iter()
                .filter(|call| call.tool == self.tool && self.in_scope(call, FactScope::Session))
        };
        let of = |state| own().filter(move |call| call.state == state);
        let since = Timestamp::from_micros(i64::MIN);
        let conversation = || {
            self.past
                .conversation
                .ok_or("the session was not looked at")
        };
        match name {
            "labels" => Ok(Some(AttributeValue::Strings(self.past.labels.clone()))),
            "started_at" => Ok(time(Some(conversation()?.started_at))),
            "turn" => Ok(Some(AttributeValue::Long(conversation()?.turn))),
            "calls_since_user" => {
                let calls = usize::try_from(conversation()?.calls_since_user);
                count(calls.map_err(|_| TOO_LARGE)?)
            }
            "this.admitted" => count(own().filter(|call| admitted(call, since)).count()),
            "this.in_flight" => count(own().filter(|call| call.in_flight()).count()),
            "this.ok" => count(of(CallState::Succeeded).count()),
            "this.failed" => count(of(CallState::Failed).count()),
            "this.denied" => count(of(CallState::Denied).count()),
            "this.declined" => count(of(CallState::Declined).count()),
            "this.last_ok_at" => Ok(time(of(CallState::Succeeded).map(|c| c.updated_at).max())),
            "this.last_failed_at" => Ok(time(of(CallState::Failed).map(|c| c.updated_at).max())),
            "this.same_args_admitted" => {
                let mut same = 0;
                for call in own().filter(|call| admitted(call, since)) {
                    same += usize::from(self.is_same(call, &SameArguments::All)?);
                }
                count(same)
            }
            _ => Err("the runtime does not compute this fact"),
        }
    }
}
