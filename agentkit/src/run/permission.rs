//! Whether a person may decide about a call, asked before the person tries: what an inbox shows.

use agentkit_policy::{Approvals, Permission, User};

use super::{Runtime, question::Moment};
use crate::{
    call::{Principal, Timestamp},
    store::{CallInSight, StoreError},
};

impl Runtime {
    /// A person as policies see them now, on the strength of credentials that were just
    /// presented; none where the person does not count.
    pub(crate) async fn person(&self, who: &Principal, now: Timestamp) -> Option<User> {
        let standing = self.standing(who).await;
        self.user(who, Some(&standing), now, now)
    }

    /// What the policy says to `approver` approving `seen`, with the votes that it has.
    ///
    /// # Errors
    ///
    /// When the stored arguments cannot be read.
    pub(crate) async fn may_approve(
        &self,
        seen: &CallInSight,
        approver: &User,
        now: Timestamp,
    ) -> Result<Permission, StoreError> {
        let CallInSight { run, call, .. } = seen;
        let id = call.id.as_str();
        let arguments = call
            .arguments
            .as_ref()
            .ok_or_else(|| StoreError::corrupt("arguments", id, "the call has none"))?;
        let requester = self.requester(&run.requester).await;
        let looks = self.looks(&call.tool);
        let past = self.store.past_beside(run, &call.id, &looks, now).await?;
        let requested_at = call.requested_at.unwrap_or(now);
        let mut so_far = Approvals::requested_at(requested_at.as_micros());
        let standings = self.standings(&call.id).await?;
        so_far.approvers = seen
            .votes()
            .filter_map(|vote| {
                let standing = standings.get(&vote.approver.id);
                self.user(&vote.approver, standing, vote.at, now)
            })
            .collect();
        let moment = Moment {
            run,
            requester: &requester,
            step: call.step,
            tool: &call.tool,
            arguments,
            past: &past,
            now,
        };
        self.permission_by_policy(&moment, approver, &so_far)
    }
}
