//! Who may see what. Everything that is not visible does not exist for the caller.

use agentkit_policy::User;

use super::{Problem, state::Server};
use crate::{
    call::{CallId, Principal, RunId, Timestamp},
    run::Runtime,
    store::{CallInSight, RunRecord, StoreError},
};

/// What one caller may see, at one moment.
pub(super) struct Sight<'a> {
    server: &'a Server,
    who: &'a Principal,
    now: Timestamp,
}

/// A call that the caller may see, and what the caller may do about it.
pub(super) struct Seen {
    pub(super) call: CallInSight,
    pub(super) standing: Standing,
}

/// What the caller is to a call.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// The agent acts on the caller's behalf.
    pub(super) requester: bool,
    /// The policy lets the caller approve.
    pub(super) may_approve: bool,
    /// The policy's word on that.
    pub(super) why: String,
    /// The caller has decided about it.
    pub(super) decided: bool,
}

impl<'a> Sight<'a> {
    pub(super) async fn of(server: &'a Server, who: &'a Principal) -> Result<Self, StoreError> {
        let now = server.store.now().await?;
        Ok(Self::at(server, who, now))
    }

    /// At a time of the database's clock that was just read.
    pub(super) const fn at(server: &'a Server, who: &'a Principal, now: Timestamp) -> Self {
        Self { server, who, now }
    }

    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    /// How the caller stands to a call; nothing where the caller may not see it.
    pub(super) async fn standing(
        &self,
        seen: &CallInSight,
    ) -> Result<Option<Standing>, StoreError> {
        if !self.same_tenant(&seen.run) {
            return Ok(None);
        }
        let runtime = self.server.runtime_of(&seen.run);
        let person = match &runtime {
            Some(runtime) => runtime.person(self.who, self.now).await,
            None => None,
        };
        let standing = self
            .stand(seen, runtime.as_deref(), person.as_ref())
            .await?;
        let visible = standing.requester
            || standing.may_approve
            || standing.decided
            || self.server.is_auditor(self.who);
        Ok(visible.then_some(standing))
    }

    async fn stand(
        &self,
        seen: &CallInSight,
        runtime: Option<&Runtime>,
        person: Option<&User>,
    ) -> Result<Standing, StoreError> {
        let (may_approve, why) = match (runtime, person) {
            (None, _) => (false, "this instance does not host the agent".to_owned()),
            (_, None) => (false, "the directory does not know you".to_owned()),
            // What was never put before people is not an approver's to see.
            (Some(_), Some(_)) if seen.call.fingerprint.is_none() => (false, String::new()),
            (Some(runtime), Some(person)) => {
                let permission = runtime.may_approve(seen, person, self.now).await?;
                (permission.permitted, permission.why)
            }
        };
        Ok(Standing {
            requester: self.is_requester(&seen.run),
            may_approve,
            why,
            decided: seen
                .decisions
                .iter()
                .any(|stored| stored.approver.id == self.who.id),
        })
    }

    fn same_tenant(&self, run: &RunRecord) -> bool {
        run.requester.tenant == self.who.tenant
    }

    fn is_requester(&self, run: &RunRecord) -> bool {
        self.same_tenant(run) && run.requester.id == self.who.id
    }

    /// One call of one run.
    pub(super) async fn call(&self, run: &RunId, call: &CallId) -> Result<Seen, Problem> {
        let found = self.server.store.call_in_sight(run, call).await?;
        let seen = found.ok_or_else(|| Problem::unknown("call"))?;
        let standing = self.standing(&seen).await?;
        let standing = standing.ok_or_else(|| Problem::unknown("call"))?;
        Ok(Seen {
            call: seen,
            standing,
        })
    }

    /// One run, with the calls of it that the caller may see: all, for whoever may see the run by
    /// right; for an approver those that the policy lets them approve.
    pub(super) async fn run(&self, run: &RunId) -> Result<(RunRecord, Vec<Seen>), Problem> {
        let record = self.server.store.run(run).await?;
        if !self.same_tenant(&record) {
            return Err(Problem::unknown("run"));
        }
        let mut visible = Vec::new();
        for call in self.server.store.calls_in_sight(run).await? {
            if let Some(standing) = self.standing(&call).await? {
                visible.push(Seen { call, standing });
            }
        }
        let by_right = self.is_requester(&record) || self.server.is_auditor(self.who);
        if by_right || visible.iter().any(concerns) {
            Ok((record, visible))
        } else {
            Err(Problem::unknown("run"))
        }
    }

    /// A run that the caller has started, or that an auditor looks at: the whole of it.
    pub(super) async fn whole_run(&self, run: &RunId) -> Result<RunRecord, Problem> {
        let record = self.server.store.run(run).await?;
        if self.is_requester(&record)
            || (self.same_tenant(&record) && self.server.is_auditor(self.who))
        {
            Ok(record)
        } else {
            Err(Problem::unknown("run"))
        }
    }

    /// A run that the caller has started.
    pub(super) async fn own_run(&self, run: &RunId) -> Result<RunRecord, Problem> {
        let record = self.server.store.run(run).await?;
        if self.is_requester(&record) {
            Ok(record)
        } else {
            Err(Problem::unknown("run"))
        }
    }
}

/// Whether a call makes its run visible to someone who is neither requester nor auditor.
const fn concerns(seen: &Seen) -> bool {
    seen.standing.decided || seen.standing.may_approve
}
