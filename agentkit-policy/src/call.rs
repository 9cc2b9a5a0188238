//! What is asked: a call, the person behind it, and the approvals it has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attribute::AttributeValue;
use crate::provider::Provided;
use crate::session::SessionFacts;

/// A person, authenticated by the application; in policies `User::"id" in Role::"…"`.
///
/// The id must be unique among all people whom the engine hears of: votes are counted by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Identity of the person; an empty one is nobody and is denied.
    pub id: String,
    /// Roles that the person holds now.
    #[serde(default)]
    pub roles: BTreeSet<String>,
    /// Typed facts about the person; those that [`Settings`](crate::Settings) does not declare
    /// are not visible to policies.
    #[serde(default)]
    pub attributes: BTreeMap<String, AttributeValue>,
}

impl User {
    /// A person without roles.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Adds a role.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.roles.insert(role.into());
        self
    }

    /// Sets an attribute.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }
}

/// One tool call to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Name of the declared tool.
    pub tool: &'a str,
    /// The effective arguments: what will be executed, byte for byte.
    pub arguments: &'a serde_json::Value,
    /// The person on whose behalf the agent acts.
    pub user: &'a User,
    /// Name of the agent that makes the call.
    pub agent: &'a str,
    /// Id of the run.
    pub run: &'a str,
    /// Step of the run, counted from 0.
    pub step: u32,
    /// The time of the decision, in microseconds since the Unix epoch, UTC.
    pub now: i64,
    /// What is known besides; [`Facts::default`] where policies read none of it.
    pub facts: Facts<'a>,
}

/// What is known of a call besides its arguments.
///
/// Nothing is filled in: what policies read, or the tool or an extension declares, and is not
/// here, denies the call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The past: `context.session`.
    pub session: Option<&'a SessionFacts>,
    /// What the tool derives from the arguments: `context.derived`, by
    /// [`ToolDeclaration::derived`](crate::ToolDeclaration).
    pub derived: Option<&'a BTreeMap<String, AttributeValue>>,
    /// What the application's [`EntityProvider`](crate::EntityProvider) said.
    pub provided: Option<&'a Provided>,
}

/// The approvals that a call has, and what was demanded besides the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approvals {
    /// Those who approved, in the order of their votes, with their roles of now.
    pub approvers: Vec<User>,
    /// When approval was asked for, in microseconds since the Unix epoch, UTC.
    pub requested_at: i64,
    /// Number of people that the tool's declaration or the run's options demand, if they do.
    pub demanded_quorum: Option<u32>,
    /// Age of the request past which its approvals count for nothing (24 hours by default).
    /// [`Settings::max_approval_age`](crate::Settings) bounds it.
    pub max_age: Duration,
}

impl Approvals {
    /// No approvals yet for a request made at `requested_at` (microseconds, UTC).
    pub fn requested_at(requested_at: i64) -> Self {
        Self {
            approvers: Vec::new(),
            requested_at,
            demanded_quorum: None,
            max_age: Duration::from_hours(24),
        }
    }

    /// Adds an approval.
    pub fn approved_by(mut self, approver: User) -> Self {
        self.approvers.push(approver);
        self
    }

    /// Demands a number of people besides what the policy says.
    pub fn demanding(mut self, quorum: u32) -> Self {
        self.demanded_quorum = Some(quorum);
        self
    }
}
