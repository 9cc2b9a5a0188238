use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use agentkit_policy::{PolicyEngine, PolicySet, User};

use super::{Defaults, cancel::Active, hooks::Hook};
use crate::{
    approval::{Directory, PendingCall, PendingKind, Standing},
    call::{Digest, Principal, Timestamp},
    model::{ChatModel, ToolOffer},
    store::{Store, StoreError},
    tool::{Contexts, DynTool, ToolSet},
};

/// Times that hold for all runs of an agent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How long a call waits for people unless its tool says otherwise: 24 hours.
    pub approval_ttl: Duration,
    /// How long the roles claimed with a decision count where no directory knows better: 1 hour.
    pub claims_age: Duration,
    /// How long an instance may be silent before another one takes its run over: 30 seconds.
    pub lease: Duration,
    /// How many calls of one step are executed at once: 16.
    pub concurrency: usize,
    /// How long a hook, a predicate of a run or the directory may take to answer: 30 seconds. One
    /// that takes longer has failed: the call is blocked, needs approval, or the person is unknown.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            approval_ttl: Duration::from_hours(24),
            claims_age: Duration::from_hours(1),
            lease: Duration::from_secs(30),
            concurrency: 16,
            patience: Duration::from_secs(30),
        }
    }
}

/// Everything that the runs of one agent need, untyped. Typed access is
/// [`Hosted`](crate::agent::Hosted).
pub struct Runtime {
    pub(crate) agent: String,
    pub(crate) instructions: String,
    pub(crate) definition: Digest,
    pub(crate) defaults: Defaults,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) tools: ToolSet,
    pub(crate) schemas: HashMap<String, Digest>,
    /// The agents to which this one may hand tasks, by the names of their tools.
    pub(crate) agents: HashMap<String, Arc<Self>>,
    /// Whoever has this role may cancel runs of others.
    pub(crate) operator_role: Option<String>,
    pub(crate) active: Arc<Active>,
    pub(crate) hooks: Arc<[Arc<dyn Hook>]>,
    pub(crate) contexts: Arc<Contexts>,
    pub(crate) policy: PolicyEngine,
    /// The policies of the agents above this one, which hold for its calls too.
    pub(crate) above: Vec<PolicyEngine>,
    pub(crate) policy_text: String,
    pub(crate) store: Store,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) settings: Settings,
    /// The name under which this instance holds leases.
    pub(crate) instance: String,
    pub(crate) recorded: tokio::sync::OnceCell<()>,
}

impl Runtime {
    /// The store with the runs.
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn offers(&self) -> Vec<ToolOffer> {
        self.tools
            .iter()
            .map(|tool| {
                let spec = tool.spec();
                ToolOffer {
                    name: spec.name.clone(),
                    description: spec.description.clone(),
                    input_schema: spec.input_schema.clone(),
                }
            })
            .collect()
    }

    /// Sees to it that the policy in force is on record before anything is decided under it.
    pub(crate) async fn record_policy(&self) -> Result<(), StoreError> {
        self.recorded
            .get_or_try_init(|| async {
                let built_in = self.policy.current().is_built_in();
                let text = self.policy_text.clone();
                self.store
                    .record_policy(&self.agent, &self.policy_digest(), built_in, text)
                    .await
            })
            .await
            .map(|&()| ())
    }

    /// How a person stands. Fail closed: whom the directory cannot vouch for, in time, is unknown.
    pub(crate) async fn standing(&self, person: &Principal) -> Standing {
        let asked = self.directory.standing(person);
        match tokio::time::timeout(self.settings.patience, asked).await {
            Ok(Ok(standing)) => standing,
            Ok(Err(error)) => {
                tracing::warn!(%error, "asking the directory");
                Standing::Unknown
            }
            Err(_) => {
                tracing::warn!("the directory did not answer in time");
                Standing::Unknown
            }
        }
    }

    /// A person as policies see one: with the roles that the directory knows, or, where there is
    /// no directory, those that were claimed at `claimed_at` if that is recent enough. `None`
    /// where the person does not count.
    pub(crate) fn user(
        &self,
        person: &Principal,
        standing: Option<&Standing>,
        claimed_at: Timestamp,
        now: Timestamp,
    ) -> Option<User> {
        let roles = match standing? {
            Standing::Known { roles } => roles.clone(),
            Standing::Unknown => return None,
            Standing::AsClaimed => {
                if now.saturating_since(claimed_at) > self.settings.claims_age {
                    return None;
                }
                person.roles.clone()
            }
        };
        Some(user(person, roles))
    }

    /// The requester of a run as policies see them now. Where no directory knows better, the
    /// roles are those with which the run was started: the requester is not there to claim them
    /// anew when a run continues after months.
    pub(crate) async fn requester(&self, requester: &Principal) -> User {
        let roles = match self.standing(requester).await {
            Standing::Known { roles } => roles,
            Standing::AsClaimed => requester.roles.clone(),
            // Someone without any role.
            Standing::Unknown => BTreeSet::new(),
        };
        user(requester, roles)
    }

    /// Adds what only a process that hosts the tools knows of calls that wait, in a run that
    /// stands at this place of their paths or below it.
    pub(crate) fn describe(self: &Arc<Self>, place: usize, calls: &mut [PendingCall]) {
        for call in calls {
            call.answer_schema = match call.kind {
                PendingKind::Question => self
                    .tool_of(place, call)
                    .and_then(|tool| tool.spec().resume_schema.clone()),
                _ => None,
            };
        }
    }

    /// The tool of a call of this agent, which stands at this place of the call's path, or of one
    /// below it.
    pub(crate) fn tool_of(
        self: &Arc<Self>,
        place: usize,
        call: &PendingCall,
    ) -> Option<Arc<dyn DynTool>> {
        let agent = self.at(call.path.get(place..)?)?;
        agent.tools.get(&call.tool).cloned()
    }

    pub(crate) fn policy(&self) -> Arc<PolicySet> {
        self.policy.current()
    }
}

fn user(person: &Principal, roles: BTreeSet<String>) -> User {
    let mut user =
        User::new(person.id.clone()).attribute("authenticated_by", person.authenticated_by.clone());
    if let Some(tenant) = &person.tenant {
        user = user.attribute("tenant", tenant.clone());
    }
    user.roles = roles;
    user
}
