//! What the application declares: its tools, the attributes of its users, the files of its policies.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::attribute::AttributeType;
use crate::fact::{FactDeclaration, HostFacts};
use crate::provider::Extension;

/// A tool as the policy engine sees it: a name, the shape of its arguments, and its hints.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the hints are independent of each other and named at the place of construction"
)]
pub struct ToolDeclaration {
    /// The name by which policies and calls refer to the tool; any text without white space.
    pub name: String,
    /// JSON Schema of the *serialised* arguments, the ones that are decided on and executed.
    pub input_schema: serde_json::Value,
    /// The tool changes nothing; it becomes a member of the group `read-only tools`.
    pub read_only: bool,
    /// The tool may destroy something; it becomes a member of the group `destructive tools`.
    pub destructive: bool,
    /// Running the tool twice with the same arguments has the effect of running it once.
    pub idempotent: bool,
    /// The tool always wants a human, whatever the policy would let run alone.
    pub require_approval: bool,
    /// Facts that the tool derives from its arguments, such as `total_cents` or
    /// `recipient_domains`: policies read them as `context.derived.total_cents`. Each must be
    /// handed in with every call, or the call is denied.
    pub derived: BTreeMap<String, AttributeType>,
}

impl ToolDeclaration {
    /// Declares a tool without hints that lets the policy alone decide.
    pub fn new(name: impl Into<String>, input_schema: serde_json::Value) -> Self {
        Self {
            name: name.into(),
            input_schema,
            read_only: false,
            destructive: false,
            idempotent: false,
            require_approval: false,
            derived: BTreeMap::new(),
        }
    }

    /// Declares a fact that the tool derives from its arguments.
    pub fn derived(mut self, name: impl Into<String>, kind: AttributeType) -> Self {
        self.derived.insert(name.into(), kind);
        self
    }
}

/// The text of one policy file and the name under which errors mention it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySource {
    /// Name of the file, as it appears in errors and explanations.
    pub name: String,
    /// Cedar policies in Cedar syntax.
    pub text: String,
}

impl PolicySource {
    /// Names a text of policies.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
        }
    }
}

/// How the engine is set up: the vocabulary of the policies beyond the tools, and its limits.
///
/// The default declares the user attributes `tenant` and `authenticated_by` (both `String`).
/// Every attribute is optional in the schema, so a policy asks `principal has tenant` first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Attributes that policies may read on `User` entities.
    pub user_attributes: BTreeMap<String, AttributeType>,
    /// The greatest number of approvals that a policy may ask for (5).
    pub max_quorum: u32,
    /// No approval is older than this at release, whatever a policy says (366 days).
    pub max_approval_age: Duration,
    /// Greatest nesting of one policy's expressions (200); taller ones are refused at load.
    pub max_policy_height: usize,
    /// Greatest size of all policy texts together, in bytes (16 MiB).
    pub max_policy_bytes: usize,
    /// Facts about the past that policies may read in `context.session`, besides those that are
    /// always there.
    pub facts: Vec<FactDeclaration>,
    /// Which facts of `context.session` the host hands in (all of them). A policy that reads any
    /// other does not load.
    pub host_facts: HostFacts,
    /// Entities and facts that the application adds through its
    /// [`EntityProvider`](crate::EntityProvider).
    pub extension: Extension,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            user_attributes: BTreeMap::from([
                ("tenant".to_owned(), AttributeType::String),
                ("authenticated_by".to_owned(), AttributeType::String),
            ]),
            max_quorum: 5,
            max_approval_age: Duration::from_hours(366 * 24),
            max_policy_height: 200,
            max_policy_bytes: 16 * 1024 * 1024,
            facts: Vec::new(),
            host_facts: HostFacts::All,
            extension: Extension::default(),
        }
    }
}

impl Settings {
    /// Declares an attribute of users, so that policies may read it.
    pub fn user_attribute(mut self, name: impl Into<String>, kind: AttributeType) -> Self {
        self.user_attributes.insert(name.into(), kind);
        self
    }

    /// Declares a fact about the past, so that policies may read it in `context.session`.
    pub fn fact(mut self, fact: FactDeclaration) -> Self {
        self.facts.push(fact);
        self
    }

    /// Says which facts of `context.session` the host hands in.
    pub fn host_facts(mut self, facts: HostFacts) -> Self {
        self.host_facts = facts;
        self
    }

    /// Adds the vocabulary of the application's [`EntityProvider`](crate::EntityProvider).
    pub fn extension(mut self, extension: Extension) -> Self {
        self.extension = extension;
        self
    }

    /// The longest window of the declared facts: whoever keeps the past for less time cannot
    /// compute them and has to refuse to start. None where no fact has a window.
    pub fn longest_window(&self) -> Option<Duration> {
        self.facts
            .iter()
            .filter_map(|fact| fact.window.last())
            .max()
    }
}
