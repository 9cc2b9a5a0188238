//! Release and execution of one call, and what is left of calls whose instance died.

use std::{
    collections::{BTreeSet, HashMap},
    panic::AssertUnwindSafe,
};

use agentkit_policy::{Approvals, Verdict as PolicyVerdict};
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::{
    Runtime,
    bind::{ask_again, recompute},
    drive::{Failure, Work},
    question::Moment,
    trace,
};
use crate::{
    approval::{DecisionKind, Reason, Standing},
    call::{ActionDigest, CallEvent, CallId, CallState, Canonical, Fingerprint},
    gate::{self, Gated, RunDemand},
    journal::{Event, content_digest},
    store::{ApprovedOccasion, CallChange, CallRecord, Facts, StoreError},
    tool::{DynTool, Flow, RunContext, ToolContext},
};

/// What came of trying to run a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// It ended, or waits for a person itself.
    Ended,
    /// It was handed on, and the run below waits for people.
    Parked,
}

/// What came of a tool's work.
struct Done {
    result: Result<Flow<Canonical, Canonical>, String>,
    /// What the call took on, however it ended.
    labels: BTreeSet<String>,
}

/// The approvals on which a call may be released.
struct Approved {
    occasion: ApprovedOccasion,
    /// Recomputed from the stored bytes.
    fingerprint: Fingerprint,
    approvals: Approvals,
    /// What the run demands, should it be asked again.
    demand: RunDemand,
}

impl Work {
    /// Releases a call that is ready or approved, runs it, and records its outcome.
    pub(super) async fn run_call(&self, call: &CallId) -> Result<Ran, Failure> {
        let runtime = &self.runtime;
        let standings = runtime.standings(call).await?;
        let demand = self.demand_now(call).await;
        let looks = self.calls.iter().find(|known| known.id == *call);
        let looks = looks.map_or_else(Vec::new, |call| runtime.looks(&call.tool));
        let facts =
            runtime
                .store
                .change_call_knowing(&self.run.id, Some(&self.lease), call, &looks, |facts| {
                    match facts.call.state {
                        CallState::Ready | CallState::Approved => self
                            .release(facts, &standings, demand_for(facts, demand.as_ref()))
                            .map(Some),
                        _ => Ok::<_, StoreError>(None),
                    }
                })
                .await?;
        if facts.call.state == CallState::Delegated {
            return self.run_child(&facts.call).await;
        }
        if facts.call.state != CallState::Executing || facts.call.epoch != Some(self.lease.epoch) {
            self.announce(&facts.call).await?;
            return Ok(Ran::Ended);
        }
        let (Some(tool), Some(arguments)) = (
            runtime.tools.get(&facts.call.tool),
            facts.call.arguments.clone(),
        ) else {
            return Err(
                StoreError::corrupt("call", call.as_str(), "released without a tool").into(),
            );
        };
        let span = trace::execute_tool(&facts.call);
        let executing = self.execute(tool.as_ref(), &facts.call, &arguments);
        let done = executing.instrument(span.clone()).await;
        if done.result.is_err() {
            trace::tool_failed(&span);
        }
        drop(span);
        self.record(tool.as_ref(), &facts.call, done).await?;
        Ok(Ran::Ended)
    }

    async fn execute(&self, tool: &dyn DynTool, call: &CallRecord, arguments: &Canonical) -> Done {
        let context = RunContext::new(
            call.run.clone(),
            call.id.clone(),
            // The same for every start of this call, so that a repeated start can be recognised.
            call.id.as_str(),
            self.run.requester.clone(),
            self.cancellation.clone(),
        )
        .with_request(self.options.context.visible())
        .with_asked(call.payload.clone());
        let labels = context.labels.clone();
        let contexts = std::sync::Arc::clone(&self.runtime.contexts);
        let context = ToolContext::new(context, contexts, call.answer.clone());
        let run = async { tool.run(arguments, context).await };
        let run = AssertUnwindSafe(run).catch_unwind();
        let limit = tool.spec().timeout;
        let result = match limit {
            Some(limit) => tokio::time::timeout(limit, run).await,
            None => Ok(run.await),
        };
        let result = match result {
            Ok(Ok(Ok(flow))) => Ok(flow),
            Ok(Ok(Err(error))) => Err(error.message().to_owned()),
            Ok(Err(_)) => Err("the tool panicked".to_owned()),
            Err(_) => Err(format!(
                "the tool was stopped because it took longer than {:?}; whether it had any effect \
                 is not known",
                limit.unwrap_or_default()
            )),
        };
        Done {
            result,
            labels: labels.all(),
        }
    }

    /// Makes the outcome durable, before the model is asked again.
    async fn record(
        &self,
        tool: &dyn DynTool,
        call: &CallRecord,
        done: Done,
    ) -> Result<(), Failure> {
        let ttl = self.runtime.ttl(tool);
        let facts = self
            .runtime
            .store
            .change_call(&self.run.id, Some(&self.lease), &call.id, |facts| {
                if facts.call.state != CallState::Executing {
                    return Ok(None);
                }
                let mut change = match &done.result {
                    Ok(Flow::Done(value)) => {
                        let mut change = CallChange::new(CallEvent::Succeed);
                        change.outcome = Some(value.to_string());
                        change
                    }
                    Ok(Flow::Suspend(payload)) => {
                        let mut change = CallChange::new(CallEvent::Suspend);
                        change.payload = Some(payload.clone());
                        change.ask = Some(ask_again(&facts.run, &facts.call, ttl)?);
                        change
                    }
                    Err(message) => {
                        let mut change = CallChange::new(CallEvent::Fail);
                        change.outcome = Some(message.clone());
                        change
                    }
                };
                change.labels.clone_from(&done.labels);
                let content = change.payload.as_ref().map(Canonical::to_string);
                let content = content
                    .or_else(|| change.outcome.clone())
                    .unwrap_or_default();
                change.events.push(Event::CallEnded {
                    call: facts.call.id.clone(),
                    state: facts
                        .call
                        .state
                        .after(change.event)
                        .unwrap_or(facts.call.state),
                    content: content_digest(&facts.run.secret, content.as_bytes()),
                });
                Ok::<_, StoreError>(Some(change))
            })
            .await?;
        self.after_tool_call(&facts.call).await;
        Ok(self.announce(&facts.call).await?)
    }

    /// What the run demands for a call as it stands now, with the arguments that were judged.
    async fn demand_now(&self, call: &CallId) -> Option<(Canonical, RunDemand)> {
        let call = self.calls.iter().find(|known| known.id == *call)?;
        let arguments = call.arguments.clone()?;
        let demand = self.demand(&call.tool, &arguments).await;
        Some((arguments, demand))
    }

    /// What becomes of a call just before its execution: every ground on which it may run is
    /// checked once more, against the very bytes that will run.
    fn release(
        &self,
        facts: &Facts,
        standings: &HashMap<String, Standing>,
        demand: RunDemand,
    ) -> Result<CallChange, StoreError> {
        let Facts { run, call, now, .. } = facts;
        if run.cancelled.is_some() {
            let why = "cancelled: the run was cancelled before this ran";
            return Ok(stop(facts, CallEvent::Cancel, why.to_owned()));
        }
        let tool = match (self.gone(call), self.runtime.tools.get(&call.tool)) {
            (None, Some(tool)) => tool,
            (why, _) => return Ok(stop(facts, CallEvent::Supersede, why.unwrap_or_default())),
        };
        let Some(arguments) = &call.arguments else {
            return Ok(stop(
                facts,
                CallEvent::Deny,
                "the stored arguments are gone".to_owned(),
            ));
        };
        // The fingerprint of an amended call that may run alone is that of the call which was
        // amended; its own bytes are held by the action digest.
        let amended_alone = call.state == CallState::Ready
            && call.gate.amended_by.is_some()
            && call.gate.approved.is_none();
        let intact = call.action == Some(ActionDigest::of(&run.secret, &call.tool, arguments))
            && (amended_alone
                || call
                    .nonce
                    .is_none_or(|nonce| recompute(run, call, &nonce) == call.fingerprint));
        if !intact {
            let why = "refused: the stored call was changed after it was gated, so it is not what \
                       was approved";
            return Ok(stop(facts, CallEvent::Deny, why.to_owned()));
        }
        let occasion = match call.state {
            CallState::Approved => {
                call.nonce
                    .zip(call.requested_at)
                    .map(|(nonce, requested_at)| ApprovedOccasion {
                        nonce,
                        requested_at,
                    })
            }
            _ => call.gate.approved,
        };
        let Some(occasion) = occasion else {
            return self.release_unattended(facts, tool.as_ref(), arguments, demand);
        };
        if call.state == CallState::Approved && call.expires_at.is_none_or(|until| until <= *now) {
            return Ok(expired(facts));
        }
        if call.definition != self.runtime.definition {
            return self.ask_anew(
                facts,
                tool.as_ref(),
                arguments,
                demand,
                "the agent's definition changed",
            );
        }
        if self.runtime.slice_digest(&call.tool) != call.policy_slice {
            return self.ask_anew(
                facts,
                tool.as_ref(),
                arguments,
                demand,
                "the policy for this tool changed",
            );
        }
        let Some(fingerprint) = recompute(run, call, &occasion.nonce) else {
            return Ok(stop(
                facts,
                CallEvent::Deny,
                "the stored call is incomplete".to_owned(),
            ));
        };
        let mut approvals = self.approvals(facts, standings, occasion, fingerprint);
        // The row says what was demanded when people were asked, and a row can be changed: what
        // the tool and the run demand of these arguments is worked out again.
        let declared = tool.spec().approval.for_call(&call.tool, arguments);
        let demanded = gate::demanded(&declared, demand).max(call.gate.demanded);
        approvals.demanded_quorum = (demanded > 0).then_some(demanded);
        let approved = Approved {
            occasion,
            fingerprint,
            approvals,
            demand,
        };
        self.release_approved(facts, tool.as_ref(), arguments, &approved)
    }

    /// The approvals of an occasion that count: given for this very fingerprint, by people who
    /// still stand as they did.
    fn approvals(
        &self,
        facts: &Facts,
        standings: &HashMap<String, Standing>,
        occasion: ApprovedOccasion,
        fingerprint: Fingerprint,
    ) -> Approvals {
        let mut approvals = Approvals::requested_at(occasion.requested_at.as_micros());
        approvals.approvers = facts
            .decisions
            .iter()
            .filter(|stored| stored.nonce == occasion.nonce)
            .filter(|stored| stored.decision.kind == DecisionKind::Approve)
            // A vote counts for what the approver saw and for nothing else.
            .filter(|stored| stored.decision.fingerprint == fingerprint)
            .filter_map(|stored| {
                let standing = standings.get(&stored.approver.id);
                self.runtime
                    .user(&stored.approver, standing, stored.decision.at, facts.now)
            })
            .collect();
        approvals
    }

    /// Release of a call that people approved: the policy is asked again with their approvals.
    fn release_approved(
        &self,
        facts: &Facts,
        tool: &dyn DynTool,
        arguments: &Canonical,
        approved: &Approved,
    ) -> Result<CallChange, StoreError> {
        let Facts { run, call, now, .. } = facts;
        let moment = Moment {
            run,
            requester: &self.requester,
            step: call.step,
            tool: &call.tool,
            arguments,
            past: &facts.past,
            now: *now,
        };
        let release = self
            .runtime
            .release_by_policy(&moment, &approved.approvals)?;
        match release.verdict {
            PolicyVerdict::Run => {
                let policies = release
                    .determining
                    .iter()
                    .map(|policy| policy.id.clone())
                    .collect();
                let mut change = self.start(facts, approved.fingerprint, release.counted, policies);
                let mut gate = call.gate.clone();
                gate.approved = Some(approved.occasion);
                change.gate = Some(gate);
                Ok(change)
            }
            PolicyVerdict::Wait { .. } => {
                let refused: Vec<_> = release
                    .refused
                    .iter()
                    .map(|vote| format!("`{}`: {}", vote.approver, vote.why))
                    .collect();
                let what = if refused.is_empty() {
                    "the approvals no longer suffice".to_owned()
                } else {
                    format!("approvals no longer count ({})", refused.join("; "))
                };
                self.ask_anew(facts, tool, arguments, approved.demand, &what)
            }
            PolicyVerdict::Deny => {
                let decision = self.runtime.decide_by_policy(&moment)?;
                Ok(stop(facts, CallEvent::Deny, gate::denial(&decision)))
            }
        }
    }

    /// Release of a call that nobody had to approve.
    fn release_unattended(
        &self,
        facts: &Facts,
        tool: &dyn DynTool,
        arguments: &Canonical,
        demand: RunDemand,
    ) -> Result<CallChange, StoreError> {
        let Facts { run, call, now, .. } = facts;
        let asking = self.asking(run, demand, &facts.past);
        let judged = self
            .runtime
            .judge(tool, arguments, asking, call.step, *now)?;
        match &judged.gated {
            Gated::Allow => {
                // Nobody saw a fingerprint; the journal still names the bytes that run.
                let bytes = content_digest(&run.secret, arguments.as_bytes());
                Ok(self.start(facts, bytes.into(), Vec::new(), judged.policies()))
            }
            Gated::Ask { .. } => self.ask_anew(
                facts,
                tool,
                arguments,
                demand,
                "what let it run alone changed",
            ),
            Gated::Deny { why } => Ok(stop(facts, CallEvent::Deny, why.clone())),
        }
    }

    fn start(
        &self,
        facts: &Facts,
        fingerprint: Fingerprint,
        approvers: Vec<String>,
        policies: Vec<String>,
    ) -> CallChange {
        let policy = self.runtime.policy_digest();
        let call = facts.call.id.clone();
        if self.runtime.agents.contains_key(&facts.call.tool) {
            let mut change = CallChange::new(CallEvent::Delegate);
            change.events.push(Event::Delegated {
                call,
                agent: facts.call.tool.clone(),
                fingerprint,
                approvers,
                policies,
                policy,
            });
            return change;
        }
        let mut change = CallChange::new(CallEvent::Start);
        change.events.push(Event::Released {
            call,
            fingerprint,
            approvers,
            policies,
            policy,
            epoch: self.lease.epoch,
        });
        change
    }

    /// Puts a call before people again under the new facts, or decides it by them.
    fn ask_anew(
        &self,
        facts: &Facts,
        tool: &dyn DynTool,
        arguments: &Canonical,
        demand: RunDemand,
        what: &str,
    ) -> Result<CallChange, StoreError> {
        let Facts { run, call, now, .. } = facts;
        let asking = self.asking(run, demand, &facts.past);
        let mut judged = self
            .runtime
            .judge(tool, arguments, asking, call.step, *now)?;
        match &mut judged.gated {
            Gated::Deny { why } => return Ok(stop(facts, CallEvent::Deny, why.clone())),
            // It was approved on other grounds: where it could run alone now, people still decide.
            gated @ Gated::Allow => {
                *gated = Gated::Ask {
                    quorum: 1,
                    demanded: 1,
                    reasons: Vec::new(),
                };
            }
            Gated::Ask { .. } => {}
        }
        if let Gated::Ask { reasons, .. } = &mut judged.gated {
            reasons.insert(
                0,
                Reason::AskedAgain {
                    what: what.to_owned(),
                },
            );
        }
        let mut change = CallChange::new(CallEvent::Ask);
        let mut binding = self
            .runtime
            .bind(tool, &call.id, arguments.clone(), run, &judged)?;
        binding.gate.amended_by.clone_from(&call.gate.amended_by);
        binding.gate.proposed = call.gate.proposed;
        change.binding = Some(binding);
        change
            .events
            .push(refusal(facts, CallState::AwaitingApproval, what));
        Ok(change)
    }
}

impl Runtime {
    /// How the approvers of a call stand now, by their ids.
    pub(super) async fn standings(
        &self,
        call: &CallId,
    ) -> Result<HashMap<String, Standing>, StoreError> {
        let mut standings = HashMap::new();
        for stored in self.store.decisions(call).await? {
            let standing = self.standing(&stored.approver).await;
            standings.insert(stored.approver.id, standing);
        }
        Ok(standings)
    }
}

/// What the run demands, if it was asked about the very arguments that stand in the database;
/// what it was not asked about means approval.
fn demand_for(facts: &Facts, asked: Option<&(Canonical, RunDemand)>) -> RunDemand {
    match asked {
        Some((arguments, demand)) if facts.call.arguments.as_ref() == Some(arguments) => *demand,
        _ => RunDemand::Unavailable,
    }
}

pub(super) fn refusal(facts: &Facts, state: CallState, why: &str) -> Event {
    Event::ReleaseRefused {
        call: facts.call.id.clone(),
        why: why.to_owned(),
        state,
    }
}

/// Ends a call that is not released.
pub(super) fn stop(facts: &Facts, event: CallEvent, why: String) -> CallChange {
    let state = facts.call.state.after(event).unwrap_or(CallState::Denied);
    let mut change = CallChange::new(event);
    change.events.push(refusal(facts, state, &why));
    change.outcome = Some(why);
    change
}

pub(super) fn expired(facts: &Facts) -> CallChange {
    let at = facts.call.expires_at.unwrap_or(facts.now);
    let mut change = CallChange::new(CallEvent::Expire);
    change.outcome = Some(format!(
        "expired: nobody decided until {at}; it was not run"
    ));
    change.events.push(Event::Expired {
        call: facts.call.id.clone(),
        at,
    });
    change
}
