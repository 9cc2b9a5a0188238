//! Binding a call: from settled arguments and the gate's word to what is stored.

use std::time::Duration;

use agentkit_policy::{Decision, User};

use super::{Runtime, question::Moment};
use crate::{
    call::{
        ActionDigest, CallId, Canonical, Digest, Fingerprint, FingerprintInput, Nonce, Timestamp,
    },
    gate::{self, Gated, RunDemand},
    store::{Ask, Binding, CallRecord, GateRecord, Past, RunRecord, StoreError},
    tool::DynTool,
};

/// Who asks the gate: a run, on whose behalf, and what the run itself demands for the call.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) run: &'a RunRecord,
    pub(super) requester: &'a User,
    pub(super) demand: RunDemand,
    /// The earlier calls, read in the transaction in which the gate is asked.
    pub(super) past: &'a Past,
}

/// What the gate said of a call, with the decision of the policy behind it.
pub(super) struct Judged {
    pub(super) gated: Gated,
    pub(super) decision: Decision,
    pub(super) version: Digest,
    pub(super) slice: Digest,
}

impl Runtime {
    /// Asks the gate about settled arguments.
    pub(super) fn judge(
        &self,
        tool: &dyn DynTool,
        arguments: &Canonical,
        asking: Asking<'_>,
        step: u32,
        now: Timestamp,
    ) -> Result<Judged, StoreError> {
        let Asking {
            run,
            requester,
            demand,
            past,
        } = asking;
        let name = tool.spec().name.as_str();
        let decision = self.decide_by_policy(&Moment {
            run,
            requester,
            step,
            tool: name,
            arguments,
            past,
            now,
        })?;
        let declared = tool.spec().approval.for_call(name, arguments);
        let slice = self
            .slice_digest(name)
            .ok_or_else(|| StoreError::corrupt("policy slice", name, "the policy has none"))?;
        Ok(Judged {
            gated: gate::combine(&declared, demand, &decision),
            decision,
            version: self.policy_digest(),
            slice,
        })
    }

    /// What a judged call is bound to.
    pub(super) fn bind(
        &self,
        tool: &dyn DynTool,
        call: &CallId,
        arguments: Canonical,
        run: &RunRecord,
        judged: &Judged,
    ) -> Result<Binding, StoreError> {
        let spec = tool.spec();
        let mut binding = Binding {
            definition: self.definition,
            input_schema: self.schema(&spec.name)?,
            policy_slice: judged.slice,
            action: ActionDigest::of(&run.secret, &spec.name, &arguments),
            arguments,
            gate: judged.record(),
            ask: None,
        };
        if let Gated::Ask { quorum, .. } = judged.gated {
            let nonce = Nonce::random().map_err(StoreError::Randomness)?;
            let input = FingerprintInput {
                tenant: run.requester.tenant.as_deref(),
                agent: &run.agent,
                definition: &binding.definition,
                run: &run.id,
                call,
                path: &run.path,
                tool: &spec.name,
                input_schema: &binding.input_schema,
                arguments: &binding.arguments,
                requester: &run.requester.id,
                policy_slice: &binding.policy_slice,
                nonce: &nonce,
            };
            let fingerprint = input.fingerprint();
            binding.ask = Some(Ask {
                nonce,
                fingerprint,
                quorum,
                ttl: self.ttl(tool),
            });
        }
        Ok(binding)
    }

    /// How long people have to decide about a call of `tool`.
    pub(super) fn ttl(&self, tool: &dyn DynTool) -> Duration {
        tool.spec()
            .approval
            .ttl
            .unwrap_or(self.settings.approval_ttl)
    }

    pub(super) fn schema(&self, tool: &str) -> Result<Digest, StoreError> {
        self.schemas
            .get(tool)
            .copied()
            .ok_or_else(|| StoreError::corrupt("schema digest", tool, "the tool has none"))
    }
}

impl Judged {
    pub(super) fn record(&self) -> GateRecord {
        let (reasons, demanded) = match &self.gated {
            Gated::Ask {
                reasons, demanded, ..
            } => (reasons.clone(), *demanded),
            Gated::Allow | Gated::Deny { .. } => (Vec::new(), 0),
        };
        GateRecord::new(reasons, self.policies(), Some(self.version), demanded)
    }

    pub(super) fn policies(&self) -> Vec<String> {
        self.decision
            .determining
            .iter()
            .map(|policy| policy.id.clone())
            .collect()
    }

    pub(super) fn errors(&self) -> Vec<String> {
        self.decision
            .errors
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

pub(super) fn value_of(arguments: &Canonical, id: &str) -> Result<serde_json::Value, StoreError> {
    arguments
        .to_value()
        .map_err(|error| StoreError::corrupt("arguments", id, error))
}

/// The fingerprint that the stored bytes of a call have, on the occasion of `nonce`.
pub(super) fn recompute(run: &RunRecord, call: &CallRecord, nonce: &Nonce) -> Option<Fingerprint> {
    let input = FingerprintInput {
        tenant: run.requester.tenant.as_deref(),
        agent: &run.agent,
        definition: &call.definition,
        run: &run.id,
        call: &call.id,
        path: &run.path,
        tool: &call.tool,
        input_schema: call.input_schema.as_ref()?,
        arguments: call.arguments.as_ref()?,
        requester: &run.requester.id,
        policy_slice: call.policy_slice.as_ref()?,
        nonce,
    };
    Some(input.fingerprint())
}

/// An occasion on which people are asked about what a call is bound to already: a question, or
/// doubt.
pub(super) fn ask_again(
    run: &RunRecord,
    call: &CallRecord,
    ttl: Duration,
) -> Result<Ask, StoreError> {
    let nonce = Nonce::random().map_err(StoreError::Randomness)?;
    let fingerprint = recompute(run, call, &nonce).ok_or_else(|| {
        StoreError::corrupt("binding", call.id.as_str(), "the call was never bound")
    })?;
    Ok(Ask {
        nonce,
        fingerprint,
        quorum: 1,
        ttl,
    })
}
