//! What the application declares: its tools, the attributes of its users, the files of its policies.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

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
        }
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

/// The type of an attribute of a user, as policies see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttributeType {
    /// Cedar `Bool`.
    Bool,
    /// Cedar `Long`.
    Long,
    /// Cedar `String`.
    String,
    /// Cedar `Set<String>`.
    Strings,
}

/// The value of an attribute of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AttributeValue {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Long(i64),
    /// A text of at most 64 KiB.
    String(String),
    /// A set of texts.
    Strings(BTreeSet<String>),
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for AttributeValue {
    fn from(value: i64) -> Self {
        Self::Long(value)
    }
}

impl From<&str> for AttributeValue {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<BTreeSet<String>> for AttributeValue {
    fn from(value: BTreeSet<String>) -> Self {
        Self::Strings(value)
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
        }
    }
}

impl Settings {
    /// Declares an attribute of users, so that policies may read it.
    pub fn user_attribute(mut self, name: impl Into<String>, kind: AttributeType) -> Self {
        self.user_attributes.insert(name.into(), kind);
        self
    }
}
