//! A call as policies are asked about it. An agent below others is judged by its own policies and
//! by those of the agents above it.

use std::sync::Arc;

use agentkit_policy::{
    Approvals, Call, Decision, Facts, Permission, PolicySet, RefusedVote, Release, User, Verdict,
};

use super::{Runtime, bind::value_of};
use crate::{
    call::{Canonical, Digest, FieldHasher, Timestamp},
    gate::{both_decide, both_permit, both_release, derived_values},
    store::{Past, RunRecord, StoreError},
};

/// A call before the policies, with the past that was read in the same transaction.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) run: &'a RunRecord,
    pub(super) requester: &'a User,
    pub(super) step: u32,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Canonical,
    pub(super) past: &'a Past,
    pub(super) now: Timestamp,
}

impl Runtime {
    /// The policies in force: the agent's own, then those above it.
    pub(crate) fn policies(&self) -> impl Iterator<Item = Arc<PolicySet>> {
        let above = self
            .above
            .iter()
            .map(agentkit_policy::PolicyEngine::current);
        std::iter::once(self.policy.current()).chain(above)
    }

    /// Digest of all policies in force.
    pub(crate) fn policy_digest(&self) -> Digest {
        one_of(self.policies().map(|policy| policy.digest())).unwrap_or_else(|| Digest::of(&[]))
    }

    /// Digest of the policies in force that are about one tool; none where they do not know it.
    pub(super) fn slice_digest(&self, tool: &str) -> Option<Digest> {
        let slices: Option<Vec<_>> = self
            .policies()
            .map(|policy| policy.slice_digest(tool))
            .collect();
        one_of(slices?)
    }

    /// What the policies make of a call.
    pub(super) fn decide_by_policy(&self, moment: &Moment<'_>) -> Result<Decision, StoreError> {
        self.put(moment, PolicySet::decide, both_decide)
    }

    /// What the policies make of a call that is about to run with these approvals. A vote counts
    /// that counts for all of them, and those must be enough for each.
    pub(super) fn release_by_policy(
        &self,
        moment: &Moment<'_>,
        approvals: &Approvals,
    ) -> Result<Release, StoreError> {
        let mut approvals = approvals.clone();
        let mut refused: Vec<RefusedVote> = Vec::new();
        loop {
            let ask = |policy: &PolicySet, call: &Call<'_>| policy.release(call, &approvals);
            let mut release = self.put(moment, ask, both_release)?;
            let counts = |user: &User| release.counted.contains(&user.id);
            let all = approvals.approvers.iter().all(counts);
            if self.above.is_empty() || all || release.verdict != Verdict::Run {
                release.refused.append(&mut refused);
                return Ok(release);
            }
            approvals.approvers.retain(counts);
            refused.append(&mut release.refused);
        }
    }

    /// Whether the policies let a person approve a call.
    pub(super) fn permission_by_policy(
        &self,
        moment: &Moment<'_>,
        approver: &User,
        so_far: &Approvals,
    ) -> Result<Permission, StoreError> {
        let ask = |policy: &PolicySet, call: &Call<'_>| policy.may_approve(call, approver, so_far);
        self.put(moment, ask, both_permit)
    }

    fn put<T>(
        &self,
        moment: &Moment<'_>,
        ask: impl Fn(&PolicySet, &Call<'_>) -> T,
        both: impl Fn(T, T) -> T,
    ) -> Result<T, StoreError> {
        let value = value_of(moment.arguments, moment.tool)?;
        let derived = self
            .tools
            .get(moment.tool)
            .map(|tool| derived_values(tool.spec(), moment.arguments))
            .unwrap_or_default();
        let asked = |policy: &PolicySet| -> Result<T, StoreError> {
            let session = moment.session(policy)?;
            let call = Call {
                tool: moment.tool,
                arguments: &value,
                user: moment.requester,
                agent: &self.agent,
                run: moment.run.id.as_str(),
                step: moment.step,
                now: moment.now.as_micros(),
                facts: Facts {
                    session: Some(&session),
                    derived: Some(&derived),
                    ..Facts::default()
                },
            };
            Ok(ask(policy, &call))
        };
        let mut answer = asked(&self.policy.current())?;
        for policy in &self.above {
            answer = both(answer, asked(&policy.current())?);
        }
        Ok(answer)
    }
}

/// The digest of one thing as it is, of several as of a list.
fn one_of(digests: impl IntoIterator<Item = [u8; 32]>) -> Option<Digest> {
    let digests: Vec<_> = digests.into_iter().collect();
    match digests.as_slice() {
        [] => None,
        [one] => Some(Digest::from_bytes(*one)),
        several => {
            let mut hasher = FieldHasher::new("agentkit/policies/v1");
            hasher.list(several.iter().map(<[u8; 32]>::as_slice));
            Some(hasher.finish())
        }
    }
}
