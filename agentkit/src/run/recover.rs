//! What is left of earlier work: calls of an instance that died, calls that cannot run any more,
//! calls whose time is over.

use super::{
    bind::ask_again,
    drive::{Failure, Work},
    execute::{expired, refusal, stop},
};
use crate::{
    call::{CallEvent, CallId, CallState},
    store::{CallChange, CallRecord, Facts, StoreError},
};

impl Work {
    /// Calls of an instance that died: whether they took effect is not known. One that is
    /// declared idempotent is started again, with the same idempotency key; any other waits for
    /// a person.
    pub(super) async fn recover(&mut self) -> Result<(), Failure> {
        let lost: Vec<_> = self
            .calls
            .iter()
            .filter(|call| call.state == CallState::Executing)
            .filter(|call| call.epoch.is_none_or(|epoch| epoch < self.lease.epoch))
            .map(|call| (call.id.clone(), call.tool.clone()))
            .collect();
        for (call, tool) in &lost {
            let tool = self.runtime.tools.get(tool);
            let ttl = tool.map_or(self.runtime.settings.approval_ttl, |tool| {
                self.runtime.ttl(tool.as_ref())
            });
            let facts = self
                .change(call, |facts| {
                    let mut change = CallChange::new(CallEvent::LoseHolder);
                    change.ask = Some(ask_again(&facts.run, &facts.call, ttl)?);
                    change
                        .events
                        .push(refusal(facts, CallState::InDoubt, "its instance died"));
                    Ok(change)
                })
                .await?;
            if tool.is_some_and(|tool| tool.spec().hints.idempotent) {
                self.change(call, |facts| {
                    let mut change = CallChange::new(CallEvent::Retry);
                    let why = "its tool is idempotent and is started again";
                    change.events.push(refusal(facts, CallState::Ready, why));
                    Ok(change)
                })
                .await?;
            } else {
                self.announce(&facts.call).await?;
            }
        }
        if lost.is_empty() {
            Ok(())
        } else {
            Ok(self.reload().await?)
        }
    }

    /// Ends calls that wait for people although what they were based on is gone: a human is not
    /// asked about a call that cannot run. The run goes on.
    pub(super) async fn void_stale(&mut self) -> Result<(), Failure> {
        let waiting = |state: CallState| state.needs_person() && state != CallState::InDoubt;
        let mut stale = Vec::new();
        for call in self.calls.iter().filter(|call| waiting(call.state)) {
            if let Some(why) = self.gone(call) {
                stale.push((call.id.clone(), why));
            }
        }
        for (call, why) in &stale {
            let facts = self
                .runtime
                .store
                .change_call(&self.run.id, Some(&self.lease), call, |facts| {
                    Ok::<_, StoreError>(
                        waiting(facts.call.state)
                            .then(|| stop(facts, CallEvent::Supersede, why.clone())),
                    )
                })
                .await?;
            self.announce(&facts.call).await?;
        }
        if stale.is_empty() {
            Ok(())
        } else {
            Ok(self.reload().await?)
        }
    }

    /// Why a call cannot run any more, whatever anyone decides.
    pub(super) fn gone(&self, call: &CallRecord) -> Option<String> {
        if self.runtime.tools.get(&call.tool).is_none() {
            return Some(format!("the agent has no tool `{}` any more", call.tool));
        }
        let schema = self.runtime.schema(&call.tool).ok();
        (call.input_schema != schema).then(|| {
            format!(
                "the tool `{}` has another schema than when it was asked",
                call.tool
            )
        })
    }

    async fn change(
        &self,
        call: &CallId,
        mut change: impl FnMut(&Facts) -> Result<CallChange, StoreError> + Send,
    ) -> Result<Facts, StoreError> {
        let decide = |facts: &Facts| change(facts).map(Some);
        self.runtime
            .store
            .change_call(&self.run.id, Some(&self.lease), call, decide)
            .await
    }

    /// Ends calls about which nobody decided in time.
    pub(super) async fn expire_overdue(&mut self) -> Result<(), Failure> {
        let waiting = |state| {
            matches!(
                state,
                CallState::AwaitingApproval | CallState::AwaitingInput
            )
        };
        if !self.calls.iter().any(|call| waiting(call.state)) {
            return Ok(());
        }
        let now = self.runtime.store.now().await?;
        let overdue: Vec<_> = self
            .calls
            .iter()
            .filter(|call| waiting(call.state) && call.expires_at.is_some_and(|until| until <= now))
            .map(|call| call.id.clone())
            .collect();
        for call in &overdue {
            let facts = self
                .runtime
                .store
                .change_call(&self.run.id, Some(&self.lease), call, |facts| {
                    Ok::<_, StoreError>(waiting(facts.call.state).then(|| expired(facts)))
                })
                .await?;
            self.announce(&facts.call).await?;
        }
        Ok(self.reload().await?)
    }
}
