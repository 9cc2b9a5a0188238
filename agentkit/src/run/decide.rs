//! Decisions: exactly one wins, and whoever loses learns which.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use agentkit_policy::{Approvals, User};

use super::{
    DecideError, RunOptions, Runtime,
    bind::{Asking, recompute, value_of},
    execute::expired,
    question::Moment,
};
use crate::{
    approval::{
        Decided, Decision, DecisionKind, PendingKind, RecordedDecision, Settlement, Standing,
        Verdict,
    },
    call::{CallEvent, CallState, Canonical, Principal},
    gate::{Gated, policy_reason},
    journal::{Event, content_digest},
    model::Message,
    store::{CallChange, Facts, NewDecision, RunRecord, StoreError},
};

type Reply = Result<Decided, DecideError>;

impl Runtime {
    /// Records a decision of an authenticated person. The run itself is not continued.
    ///
    /// Repeating a decision returns the recorded one.
    ///
    /// # Errors
    ///
    /// When the decision is refused: nothing was changed and nothing consumed, except that a
    /// call whose time is over is marked as expired.
    pub async fn decide(self: &Arc<Self>, by: &Principal, decision: Decision) -> Reply {
        // Boxed, so that the futures of those who call it stay small.
        Box::pin(self.decide_saying(by, decision, None)).await
    }

    /// Records an answer that a person gave by saying something.
    pub(super) async fn answer_by(
        self: &Arc<Self>,
        by: &Principal,
        decision: Decision,
        said: &Message,
    ) -> Reply {
        let said = serde_json::to_string(said)
            .map_err(|error| StoreError::corrupt("message", decision.run.as_str(), error))?;
        Box::pin(self.decide_saying(by, decision, Some(&said))).await
    }

    async fn decide_saying(
        self: &Arc<Self>,
        by: &Principal,
        decision: Decision,
        said: Option<&str>,
    ) -> Reply {
        let Some(record) = self.store.run_of(&decision.call).await? else {
            return Err(unknown(&decision));
        };
        // The run of the call, or one above it: both mean the same call.
        let mut named = record.clone();
        while named.id != decision.run {
            let Some(parent) = &named.parent else {
                return Err(unknown(&decision));
            };
            named = self.store.run(&parent.run).await?;
        }
        let agent = self.at(&record.path).ok_or_else(|| unknown(&decision))?;
        let mut attempts = 0;
        loop {
            match agent.decide_in(by, decision.clone(), &record, said).await {
                // Someone else decided at the same time: look at it again.
                Err(DecideError::Store(StoreError::Conflict { .. })) if attempts < 8 => {
                    attempts += 1;
                }
                reply => return reply,
            }
        }
    }

    /// Records a decision about a call of a run of this very agent.
    async fn decide_in(
        &self,
        by: &Principal,
        decision: Decision,
        record: &RunRecord,
        said: Option<&str>,
    ) -> Reply {
        let standings = self.standings(&decision.call).await?;
        let standing = self.standing(by).await;
        let requester = self.requester(&record.requester).await;
        let looks = match self.store.tool_of(&decision.call).await? {
            Some(tool) => self.looks(&tool),
            None => Vec::new(),
        };
        let mut reply: Option<Reply> = None;
        let outcome = self
            .store
            .change_call_knowing(&record.id, None, &decision.call, &looks, |facts| {
                // How everyone stands was read before; whoever decided since then is unknown yet.
                let known = |id: &String| standings.contains_key(id);
                if !facts.current().all(|stored| known(&stored.approver.id)) {
                    return Err(StoreError::Conflict {
                        call: facts.call.id.to_string(),
                    }
                    .into());
                }
                // A person without standing has no roles, and policies decide on that.
                let approver = self.user(by, Some(&standing), facts.now, facts.now);
                let asked = Asked {
                    runtime: self,
                    facts,
                    by,
                    approver,
                    requester: &requester,
                    standings: &standings,
                };
                match asked.resolve(&decision)? {
                    Resolved::Change(mut change, answer) => {
                        if answer.is_ok() {
                            change.said = said.map(str::to_owned);
                        }
                        reply = Some(answer);
                        Ok(Some(*change))
                    }
                    Resolved::Nothing(decided) => {
                        reply = Some(Ok(decided));
                        Ok(None)
                    }
                }
            })
            .await;
        match outcome {
            Err(DecideError::Store(StoreError::UnknownCall { .. })) => Err(unknown(&decision)),
            Err(error) => Err(error),
            Ok(_) => reply.unwrap_or_else(|| Err(unknown(&decision))),
        }
    }
}

fn unknown(decision: &Decision) -> DecideError {
    DecideError::UnknownCall {
        run: decision.run.clone(),
        call: decision.call.clone(),
    }
}

enum Resolved {
    Change(Box<CallChange>, Reply),
    Nothing(Decided),
}

/// One decision in the light of what stands in the database.
struct Asked<'a> {
    runtime: &'a Runtime,
    facts: &'a Facts,
    by: &'a Principal,
    approver: Option<User>,
    requester: &'a User,
    /// How those stand now who decided before, by their ids.
    standings: &'a HashMap<String, Standing>,
}

impl Asked<'_> {
    fn resolve(&self, decision: &Decision) -> Result<Resolved, DecideError> {
        let Facts { run, call, now, .. } = self.facts;
        if run.agent != self.runtime.agent || run.requester.tenant != self.by.tenant {
            return Err(unknown(decision));
        }
        let Some(waiting) = waiting(call.state) else {
            return self.not_pending(decision);
        };
        let (Some(fingerprint), Some(nonce)) = (call.fingerprint, call.nonce) else {
            let why = "it waits for people without a fingerprint";
            return Err(StoreError::corrupt("call", call.id.as_str(), why).into());
        };
        if decision.fingerprint != fingerprint {
            return Err(DecideError::FingerprintMismatch {
                given: decision.fingerprint,
                current: fingerprint,
            });
        }
        let kind = decision.verdict.kind();
        let stops = matches!(kind, DecisionKind::Decline | DecisionKind::Cancel);
        if recompute(run, call, &nonce) != Some(fingerprint) && !stops {
            return Err(DecideError::Tampered {
                call: call.id.clone(),
                fingerprint,
            });
        }
        if !fits(waiting, kind) {
            return Err(DecideError::WrongKind {
                given: kind,
                waiting,
            });
        }
        let over = call.expires_at.is_none_or(|until| until <= *now);
        if over && waiting != PendingKind::InDoubt {
            let at = call.expires_at.unwrap_or(*now);
            let error = DecideError::Expired {
                call: call.id.clone(),
                at,
            };
            return Ok(Resolved::Change(Box::new(expired(self.facts)), Err(error)));
        }
        let mine = self
            .facts
            .current()
            .find(|stored| stored.approver.id == self.by.id);
        if let Some(mine) = mine {
            let recorded = mine.decision.clone();
            return if recorded.says_the_same_as(&decision.verdict) {
                let needed = self.still_needed(0);
                Ok(Resolved::Nothing(Decided::new(
                    call.state, recorded, true, needed,
                )))
            } else {
                Err(self.already(recorded))
            };
        }
        self.check_permission(waiting, kind)?;
        self.change(decision)
    }

    /// The call has been decided, or never waited.
    fn not_pending(&self, decision: &Decision) -> Result<Resolved, DecideError> {
        let call = &self.facts.call;
        if call.state == CallState::Expired {
            let at = call.expires_at.unwrap_or(self.facts.now);
            return Err(DecideError::Expired {
                call: call.id.clone(),
                at,
            });
        }
        // The caller's own decision first, then whichever was the last.
        let about = self
            .facts
            .decisions
            .iter()
            .filter(|stored| stored.decision.fingerprint == decision.fingerprint);
        let mine = about
            .clone()
            .find(|stored| stored.approver.id == self.by.id);
        let last = about.max_by_key(|stored| stored.decision.at);
        let any = self
            .facts
            .decisions
            .iter()
            .max_by_key(|stored| stored.decision.at);
        match (mine.or(last), any) {
            (Some(stored), _) if stored.decision.says_the_same_as(&decision.verdict) => Ok(
                Resolved::Nothing(Decided::new(call.state, stored.decision.clone(), true, 0)),
            ),
            (Some(stored), _) | (None, Some(stored)) => Err(self.already(stored.decision.clone())),
            (None, None) => Err(DecideError::NotPending {
                call: call.id.clone(),
                state: call.state,
            }),
        }
    }

    fn already(&self, recorded: RecordedDecision) -> DecideError {
        let call = &self.facts.call;
        DecideError::AlreadyDecided {
            call: call.id.clone(),
            state: call.state,
            recorded: Box::new(recorded),
        }
    }

    /// Whether this person may decide. The requester may answer the agent's questions and
    /// withdraw calls; for all else the policy names who may approve.
    fn check_permission(
        &self,
        waiting: PendingKind,
        kind: DecisionKind,
    ) -> Result<(), DecideError> {
        let Facts { run, call, now, .. } = self.facts;
        let own = self.by.id == run.requester.id;
        if own && (waiting == PendingKind::Question || kind == DecisionKind::Cancel) {
            return Ok(());
        }
        let refuse = |why: String| DecideError::NotAllowed {
            approver: self.by.id.clone(),
            tool: call.tool.clone(),
            why,
        };
        let Some(approver) = &self.approver else {
            return Err(refuse("the directory does not know this person".to_owned()));
        };
        let Some(arguments) = &call.arguments else {
            return Err(refuse("the call has no arguments".to_owned()));
        };
        let requested_at = call.requested_at.unwrap_or(*now);
        let mut so_far = Approvals::requested_at(requested_at.as_micros());
        so_far.approvers = self
            .votes()
            .filter_map(|(person, at)| {
                let standing = self.standings.get(&person.id);
                self.runtime.user(person, standing, at, *now)
            })
            .collect();
        let moment = Moment {
            run,
            requester: self.requester,
            step: call.step,
            tool: &call.tool,
            arguments,
            past: &self.facts.past,
            now: *now,
        };
        let permission = self
            .runtime
            .permission_by_policy(&moment, approver, &so_far)?;
        if permission.permitted {
            return Ok(());
        }
        let named = permission.determining.iter().map(policy_reason);
        let named: Vec<_> = named.map(|reason| reason.to_string()).collect();
        Err(refuse(if named.is_empty() {
            permission.why
        } else {
            format!("{} ({})", permission.why, named.join("; "))
        }))
    }

    /// The approvals of this occasion, for this very fingerprint.
    fn votes(&self) -> impl Iterator<Item = (&Principal, crate::call::Timestamp)> {
        self.facts
            .current()
            .filter(|stored| stored.decision.kind == DecisionKind::Approve)
            .filter(|stored| Some(stored.decision.fingerprint) == self.facts.call.fingerprint)
            .map(|stored| (&stored.approver, stored.decision.at))
    }

    fn still_needed(&self, more: usize) -> u32 {
        let people: BTreeSet<_> = self.votes().map(|(person, _)| &person.id).collect();
        let given = u32::try_from(people.len() + more).unwrap_or(u32::MAX);
        self.facts.call.quorum.saturating_sub(given)
    }

    fn change(&self, decision: &Decision) -> Result<Resolved, DecideError> {
        let call = &self.facts.call;
        let mut still_needed = 0;
        let mut change = match &decision.verdict {
            Verdict::Approve => {
                still_needed = self.still_needed(1);
                let enough = still_needed == 0;
                CallChange::new(if enough {
                    CallEvent::Approve
                } else {
                    CallEvent::Vote
                })
            }
            Verdict::Decline { .. } => {
                let mut change = CallChange::new(CallEvent::Decline);
                change.outcome = Some(match decision.verdict.reason() {
                    Some(reason) => format!("declined by a person, who says: {reason}"),
                    None => "declined by a person, who gave no reason".to_owned(),
                });
                change
            }
            Verdict::Amend { arguments, .. } => self.amend(arguments)?,
            Verdict::Answer { data } => {
                let mut change = CallChange::new(CallEvent::Answer);
                change.answer = Some(self.check_answer(data)?);
                change
            }
            Verdict::Cancel => {
                let mut change = CallChange::new(CallEvent::Cancel);
                change.outcome = Some("cancelled: the call was withdrawn".to_owned());
                change
            }
            Verdict::Settle(settlement) => settle(settlement),
        };
        let state = call
            .state
            .after(change.event)
            .map_err(|error| StoreError::corrupt("state", call.id.as_str(), error))?;
        let content = decision.verdict.reason().map(str::to_owned);
        let content = content.or_else(|| decision.verdict.content());
        change.events.insert(
            0,
            Event::Decided {
                call: call.id.clone(),
                verdict: decision.verdict.kind().to_string(),
                approver: self.by.id.clone(),
                authenticated_by: self.by.authenticated_by.clone(),
                fingerprint: decision.fingerprint,
                content: content
                    .map(|content| content_digest(&self.facts.run.secret, content.as_bytes())),
                state,
            },
        );
        change.decision = Some(NewDecision {
            approver: self.by.clone(),
            verdict: decision.verdict.clone(),
            fingerprint: decision.fingerprint,
        });
        let recorded = RecordedDecision::new(
            decision.verdict.kind(),
            self.by.id.clone(),
            self.facts.now,
            decision.fingerprint,
            decision.verdict.reason().map(str::to_owned),
            decision.verdict.content(),
        );
        let decided = Decided::new(state, recorded, false, still_needed);
        Ok(Resolved::Change(Box::new(change), Ok(decided)))
    }

    /// An amended call is decoded, gated and fingerprinted anew; what the policy forbids is
    /// refused, and the call waits on as it was.
    fn amend(&self, arguments: &Canonical) -> Result<CallChange, DecideError> {
        let Facts { run, call, now, .. } = self.facts;
        let tool = self
            .runtime
            .tools
            .get(&call.tool)
            .ok_or_else(|| DecideError::UnknownTool {
                tool: call.tool.clone(),
            })?;
        let settled = tool
            .settle(arguments.as_str())
            .map_err(DecideError::DoesNotFit)?;
        // Whoever decides does not have the run's predicate: it means approval.
        let option = RunOptions::from_stored(&run.options)
            .map_err(|error| StoreError::corrupt("options", run.id.as_str(), error))?
            .require_approval;
        let asking = Asking {
            run,
            requester: self.requester,
            demand: self.runtime.defaults.or_unasked(option.demand_unasked()),
            past: &self.facts.past,
        };
        let judged = self
            .runtime
            .judge(tool.as_ref(), &settled, asking, call.step, *now)?;
        if let Gated::Deny { why } = &judged.gated {
            return Err(DecideError::NotAllowed {
                approver: self.by.id.clone(),
                tool: call.tool.clone(),
                why: format!("the amended call is {why}"),
            });
        }
        let mut binding = self
            .runtime
            .bind(tool.as_ref(), &call.id, settled, run, &judged)?;
        binding.gate.amended_by = Some(self.by.id.clone());
        binding.gate.proposed = call.gate.proposed.or(call.action);
        let asks = binding.ask.is_some();
        let mut change = CallChange::new(if asks {
            CallEvent::Ask
        } else {
            CallEvent::Amend
        });
        change.events.push(Event::GateDecided {
            call: call.id.clone(),
            tool: call.tool.clone(),
            outcome: if asks {
                CallState::AwaitingApproval
            } else {
                CallState::Ready
            },
            action: Some(binding.action),
            policies: judged.policies(),
            policy: judged.version,
            errors: judged.errors(),
        });
        change.binding = Some(binding);
        Ok(change)
    }

    fn check_answer(&self, data: &Canonical) -> Result<Canonical, DecideError> {
        let name = &self.facts.call.tool;
        let tool = self
            .runtime
            .tools
            .get(name)
            .ok_or_else(|| DecideError::UnknownTool { tool: name.clone() })?;
        let value = value_of(data, name)?;
        tool.check_answer(&value).map_err(DecideError::DoesNotFit)
    }
}

fn settle(settlement: &Settlement) -> CallChange {
    let (event, outcome) = match settlement {
        Settlement::Succeeded { result } => (CallEvent::Succeed, Some(result.clone())),
        Settlement::Failed { message } => (CallEvent::Fail, Some(message.clone())),
        Settlement::Retry => (CallEvent::Retry, None),
    };
    let mut change = CallChange::new(event);
    change.outcome = outcome;
    change
}

const fn waiting(state: CallState) -> Option<PendingKind> {
    match state {
        CallState::AwaitingApproval => Some(PendingKind::Approval),
        CallState::AwaitingInput => Some(PendingKind::Question),
        CallState::InDoubt => Some(PendingKind::InDoubt),
        _ => None,
    }
}

const fn fits(waiting: PendingKind, kind: DecisionKind) -> bool {
    match waiting {
        PendingKind::Approval => matches!(
            kind,
            DecisionKind::Approve
                | DecisionKind::Decline
                | DecisionKind::Amend
                | DecisionKind::Cancel
        ),
        PendingKind::Question => matches!(kind, DecisionKind::Answer | DecisionKind::Cancel),
        PendingKind::InDoubt => matches!(kind, DecisionKind::Settle),
    }
}
