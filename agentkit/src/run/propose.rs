//! From the model's answer to durable calls: decode, gate, write.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    RunEvent,
    drive::{Failure, Work, used},
    hooks::Hooked,
};
use crate::{
    call::{CallEvent, CallId, CallState, Canonical, Timestamp},
    gate::{Gated, RunDemand},
    journal::{Event, content_digest},
    model::{Message, ToolCallPart, Turn, TurnCall},
    store::{GateRecord, Look, NewCall, Past, StoreError},
    tool::DynTool,
};

/// The longest name of a tool that is kept of what a model wrote, in characters.
const NAME: usize = 64;

/// A call before the gate.
struct Prepared {
    id: CallId,
    call: TurnCall,
    /// Why it cannot run, where it cannot.
    settled: Result<Settled, String>,
}

struct Settled {
    tool: Arc<dyn DynTool>,
    arguments: Canonical,
    /// What a hook said in the tool's place.
    blocked: Option<String>,
    demand: RunDemand,
}

impl Work {
    /// Writes the model's answer with its calls, gated, before anyone is told of them.
    pub(super) async fn propose(&mut self, turn: Turn) -> Result<(), Failure> {
        let step = self.run.step.saturating_add(1);
        let parts: Vec<_> = turn
            .tool_calls
            .iter()
            .map(|call| ToolCallPart {
                call: CallId::new(),
                provider_id: call.provider_id.clone(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
            })
            .collect();
        let mut calls = Vec::with_capacity(parts.len());
        for (part, call) in parts.iter().zip(&turn.tool_calls) {
            calls.push(self.prepare(part.call.clone(), call).await);
        }
        let looks: Vec<_> = calls.iter().map(|call| self.looks_of(call)).collect();
        let gate = |index: usize, past: &Past, now: Timestamp| match calls.get(index) {
            Some(call) => self.gate(call, step, past, now),
            None => Err(StoreError::Busy),
        };
        let message = Message::assistant(turn.text.clone(), parts);
        let body = serde_json::to_string(&message)
            .map_err(|error| StoreError::corrupt("message", self.run.id.as_str(), error))?;
        let answered = self.model_answered(&turn, step, &body);
        let records = self
            .runtime
            .store
            .record_step(
                &self.lease,
                &body,
                &looks,
                gate,
                used(&turn.usage),
                &[answered],
            )
            .await?;
        self.run.step = step;
        self.remember(step, body);
        for call in &records {
            self.listener.send(RunEvent::ToolCall {
                call: call.id.clone(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
            });
        }
        self.listener.send(RunEvent::StepFinished {
            step,
            usage: turn.usage,
        });
        for call in &records {
            self.announce(call).await?;
        }
        self.calls.extend(records);
        Ok(())
    }

    pub(super) fn model_answered(&self, turn: &Turn, step: u32, body: &str) -> Event {
        Event::ModelAnswered {
            step,
            model: self.runtime.model.name().to_string(),
            content: content_digest(&self.run.secret, body.as_bytes()),
            input_tokens: Some(turn.usage.input_tokens),
            output_tokens: Some(turn.usage.output_tokens),
        }
    }

    /// Decodes one call and lets the hooks see it.
    async fn prepare(&self, id: CallId, call: &TurnCall) -> Prepared {
        let refused = |why: String| Prepared {
            id: id.clone(),
            call: call.clone(),
            settled: Err(why),
        };
        let Some(tool) = self.runtime.tools.get(&call.tool) else {
            let known: Vec<_> = self
                .runtime
                .tools
                .iter()
                .map(|tool| format!("`{}`", tool.spec().name))
                .collect();
            let name: String = call.tool.chars().take(NAME).collect();
            return refused(format!(
                "there is no tool `{name}`; the tools are {}",
                known.join(", ")
            ));
        };
        let arguments = match tool.settle(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return refused(error.to_string()),
        };
        let (arguments, blocked) = match self.before_tool_call(tool.as_ref(), arguments).await {
            Hooked::Proceed(arguments) => (arguments, None),
            Hooked::Block { arguments, output } => (arguments, Some(output)),
            Hooked::Unfit(why) => return refused(why),
        };
        let demand = self.demand(&call.tool, &arguments).await;
        Prepared {
            id,
            call: call.clone(),
            settled: Ok(Settled {
                tool: Arc::clone(tool),
                arguments,
                blocked,
                demand,
            }),
        }
    }

    fn looks_of(&self, call: &Prepared) -> Vec<Look> {
        match &call.settled {
            Ok(_) => self.runtime.looks(&call.call.tool),
            Err(_) => Vec::new(),
        }
    }

    /// Gates one call, under the past that it is admitted with.
    fn gate(
        &self,
        prepared: &Prepared,
        step: u32,
        past: &Past,
        now: Timestamp,
    ) -> Result<NewCall, StoreError> {
        let (id, call) = (prepared.id.clone(), &prepared.call);
        let settled = match &prepared.settled {
            Ok(settled) => settled,
            Err(why) => return Ok(self.refused(id, call, why.clone())),
        };
        let runtime = &self.runtime;
        let (tool, arguments) = (&settled.tool, settled.arguments.clone());
        let blocked = settled.blocked.clone();
        let asking = self.asking(&self.run, settled.demand, past);
        let judged = runtime.judge(tool.as_ref(), &arguments, asking, step, now)?;
        let binding = runtime.bind(tool.as_ref(), &id, arguments, &self.run, &judged)?;
        // What the model asked for, and what a person made of it, where that was declined then.
        let declined_before = self.calls.iter().any(|earlier| {
            let asked = [earlier.action, earlier.gate.proposed];
            earlier.state == CallState::Declined && asked.contains(&Some(binding.action))
        });
        let (event, outcome) = match &judged.gated {
            _ if blocked.is_some() => (CallEvent::Block, blocked),
            Gated::Deny { why } => (CallEvent::Deny, Some(why.clone())),
            _ if declined_before => (
                CallEvent::Decline,
                Some(
                    "declined: the same call was declined before in this run and is not asked \
                     again; do something else"
                        .to_owned(),
                ),
            ),
            Gated::Allow => (CallEvent::Allow, None),
            Gated::Ask { .. } => (CallEvent::Ask, None),
        };
        let mut binding = binding;
        if event != CallEvent::Ask {
            binding.ask = None;
        }
        let gated = Event::GateDecided {
            call: id.clone(),
            tool: call.tool.clone(),
            outcome: after_gate(event),
            action: Some(binding.action),
            policies: judged.policies(),
            policy: judged.version,
            errors: judged.errors(),
        };
        Ok(NewCall {
            id,
            provider_id: call.provider_id.clone(),
            tool: call.tool.clone(),
            event,
            definition: runtime.definition,
            gate: binding.gate.clone(),
            binding: Some(binding),
            outcome,
            labels: tool.spec().labels.clone(),
            events: vec![gated],
        })
    }

    /// A call that no human is asked about, since it cannot run.
    fn refused(&self, id: CallId, call: &TurnCall, why: String) -> NewCall {
        let tool: String = call.tool.chars().take(NAME).collect();
        let policy = self.runtime.policy_digest();
        let gated = Event::GateDecided {
            call: id.clone(),
            tool: tool.clone(),
            outcome: CallState::Denied,
            action: None,
            policies: Vec::new(),
            policy,
            errors: vec!["the call could not be decoded".to_owned()],
        };
        NewCall {
            id,
            provider_id: call.provider_id.clone(),
            tool,
            event: CallEvent::Deny,
            binding: None,
            definition: self.runtime.definition,
            gate: GateRecord::new(Vec::new(), Vec::new(), Some(policy), 0),
            outcome: Some(why),
            labels: BTreeSet::new(),
            events: vec![gated],
        }
    }
}

fn after_gate(event: CallEvent) -> CallState {
    CallState::Proposed
        .after(event)
        .unwrap_or(CallState::Denied)
}
