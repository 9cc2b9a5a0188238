//! The policies of a question, found by whom they are about.
//!
//! Most policies of a large set name a role or a person in their scope. Where there are many of
//! them, those that cannot match the principal are not evaluated at all.

use std::collections::{BTreeMap, HashMap};

use cedar_policy::{
    Entities, EntityUid, Policy, PolicyId, PolicySet as CedarPolicies, PrincipalConstraint,
};

/// From this many policies on they are sorted by principal.
const SORTED_FROM: usize = 50;

/// The policies of one question about one tool.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    /// Those that may match anyone.
    general: CedarPolicies,
    /// Those that match only someone who is, or is in, this entity.
    by_principal: HashMap<EntityUid, CedarPolicies>,
}

impl Policies {
    pub(crate) fn new<'a>(policies: impl Iterator<Item = &'a Policy>) -> Result<Self, String> {
        let all: Vec<&Policy> = policies.collect();
        let mut general = Vec::new();
        let mut sorted: BTreeMap<EntityUid, Vec<&Policy>> = BTreeMap::new();
        for policy in &all {
            match principal(policy).filter(|_| all.len() > SORTED_FROM) {
                Some(uid) => sorted.entry(uid).or_default().push(policy),
                None => general.push(*policy),
            }
        }
        let set = |of: Vec<&Policy>| {
            CedarPolicies::from_policies(of.into_iter().cloned()).map_err(|e| e.to_string())
        };
        let by_principal: Result<HashMap<_, _>, String> = sorted
            .into_iter()
            .map(|(uid, of)| Ok((uid, set(of)?)))
            .collect();
        Ok(Self {
            general: set(general)?,
            by_principal: by_principal?,
        })
    }

    /// The sets that can match a principal; their answers have to be put together.
    pub(crate) fn about<'a>(
        &'a self,
        principal: Option<&'a EntityUid>,
        entities: &'a Entities,
    ) -> impl Iterator<Item = &'a CedarPolicies> {
        let sorted = &self.by_principal;
        let own = principal.filter(|_| !sorted.is_empty());
        let own = own.into_iter().flat_map(move |principal| {
            std::iter::once(principal)
                .chain(entities.ancestors(principal).into_iter().flatten())
                .filter_map(|uid| sorted.get(uid))
        });
        std::iter::once(&self.general).chain(own)
    }

    /// All of them.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &Policy> {
        std::iter::once(&self.general)
            .chain(self.by_principal.values())
            .flat_map(CedarPolicies::policies)
    }

    pub(crate) fn policy(&self, id: &PolicyId) -> Option<&Policy> {
        std::iter::once(&self.general)
            .chain(self.by_principal.values())
            .find_map(|set| set.policy(id))
    }
}

/// The entity that a principal must be, or be in, for a policy to match.
fn principal(policy: &Policy) -> Option<EntityUid> {
    match policy.principal_constraint() {
        PrincipalConstraint::Eq(uid)
        | PrincipalConstraint::In(uid)
        | PrincipalConstraint::IsIn(_, uid) => Some(uid),
        PrincipalConstraint::Any | PrincipalConstraint::Is(_) => None,
    }
}
