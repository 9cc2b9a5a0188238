//! Entities and facts that an application adds: groups, attributes of people, resources.
//!
//! One trait, asked before each decision, each vote and each release. What it can say is declared
//! first, so that policies are validated against it and its shape is part of every digest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use serde::{Deserialize, Serialize};

use crate::attribute::{AttributeType, AttributeValue};
use crate::call::{Call, User};
use crate::load_error::Finding;
use crate::shape::quoted;

/// The entity types that the engine itself declares.
const OURS: [&str; 4] = ["User", "Role", "Agent", "Action"];

/// What an application adds to the vocabulary of its policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Extension {
    /// Entity types of the application, such as `Group` or `Order`.
    pub types: BTreeMap<String, EntityType>,
    /// What `User` has besides roles and the attributes of
    /// [`Settings::user_attributes`](crate::Settings::user_attributes).
    pub user: EntityType,
    /// What `Agent`, the resource of every question, has.
    pub agent: EntityType,
    /// Facts about the call that policies read as `context.app.NAME`.
    pub facts: BTreeMap<String, Field>,
}

/// The shape of a type of entities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EntityType {
    /// Types of which an entity can be a member: `principal in Group::"support"`.
    pub member_of: BTreeSet<String>,
    /// Its attributes.
    pub attributes: BTreeMap<String, Field>,
}

/// An attribute of an entity, or a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its type.
    pub of: FieldType,
    /// Whether it may be absent; policies ask with `has` then.
    #[serde(default)]
    pub optional: bool,
}

/// The type of a [`Field`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// A plain value.
    Value(AttributeType),
    /// An entity of a type.
    Entity(String),
    /// A set of entities of a type.
    Entities(String),
}

impl Field {
    /// A plain value that is always there.
    pub fn value(kind: AttributeType) -> Self {
        Self {
            of: FieldType::Value(kind),
            optional: false,
        }
    }

    /// An entity that is always there.
    pub fn entity(kind: impl Into<String>) -> Self {
        Self {
            of: FieldType::Entity(kind.into()),
            optional: false,
        }
    }

    /// A set of entities that is always there.
    pub fn entities(kind: impl Into<String>) -> Self {
        Self {
            of: FieldType::Entities(kind.into()),
            optional: false,
        }
    }

    /// The same, and it may be absent.
    pub fn or_absent(mut self) -> Self {
        self.optional = true;
        self
    }

    fn target(&self) -> Option<&str> {
        match &self.of {
            FieldType::Value(_) => None,
            FieldType::Entity(kind) | FieldType::Entities(kind) => Some(kind),
        }
    }

    fn cedar(&self) -> String {
        match &self.of {
            FieldType::Value(kind) => kind.cedar().to_owned(),
            FieldType::Entity(kind) => kind.clone(),
            FieldType::Entities(kind) => format!("Set<{kind}>"),
        }
    }
}

impl EntityType {
    /// A type without attributes whose entities are members of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets its entities be members of entities of a type.
    pub fn member_of(mut self, kind: impl Into<String>) -> Self {
        self.member_of.insert(kind.into());
        self
    }

    /// Adds an attribute.
    pub fn attribute(mut self, name: impl Into<String>, field: Field) -> Self {
        self.attributes.insert(name.into(), field);
        self
    }
}

impl Extension {
    /// Adds a type of entities.
    pub fn entity(mut self, name: impl Into<String>, of: EntityType) -> Self {
        self.types.insert(name.into(), of);
        self
    }

    /// Says what users have.
    pub fn user(mut self, of: EntityType) -> Self {
        self.user = of;
        self
    }

    /// Says what agents have.
    pub fn agent(mut self, of: EntityType) -> Self {
        self.agent = of;
        self
    }

    /// Adds a fact: `context.app.NAME`.
    pub fn fact(mut self, name: impl Into<String>, field: Field) -> Self {
        self.facts.insert(name.into(), field);
        self
    }

    /// Whether it adds nothing, so that nobody has to be asked.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many entities a policy may have to step through to reach everything in it.
    pub(crate) fn level(&self) -> u32 {
        // Entities can refer to each other in circles; nobody follows more than a few.
        const MOST: u32 = 4;
        let refers = |of: &EntityType| of.attributes.values().any(|f| f.target().is_some());
        if self.types.values().any(refers) {
            MOST
        } else {
            u32::from(refers(&self.user) || refers(&self.agent) || !self.facts.is_empty())
        }
    }

    pub(crate) fn declare(&self, out: &mut String) {
        for (name, of) in &self.types {
            let _ = write!(out, "entity {name}");
            of.finish(out, &[], &[]);
        }
    }

    pub(crate) fn facts_type(&self) -> Option<String> {
        (!self.facts.is_empty()).then(|| record_type(&self.facts, &[]))
    }

    pub(crate) fn check(&self, user_attributes: &BTreeMap<String, AttributeType>) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut refuse = |message: String, remedy: &str| {
            findings.push(Finding::about(format!("entity provider: {message}")).suggest(remedy));
        };
        for name in self.types.keys() {
            let plain = name.starts_with(|c: char| c.is_ascii_uppercase())
                && name.chars().all(|c| c.is_ascii_alphanumeric())
                && !matches!(
                    name.as_str(),
                    "Bool" | "Long" | "String" | "Set" | "Record" | "Entity" | "Extension"
                );
            if !plain || OURS.contains(&name.as_str()) {
                refuse(
                    format!("`{name}` cannot be the name of an entity type"),
                    "use an upper-case letter, then letters and digits, and none of the engine's names",
                );
            }
        }
        for name in user_attributes.keys() {
            if self.user.attributes.contains_key(name) {
                refuse(
                    format!("the attribute `{name}` of `User` is declared twice"),
                    "declare it either in `Settings::user_attributes` or in the extension",
                );
            }
        }
        let known =
            |kind: &str| self.types.contains_key(kind) || OURS.contains(&kind) && kind != "Action";
        let all = self.types.iter().map(|(name, of)| (name.as_str(), of));
        for (owner, of) in all.chain([("User", &self.user), ("Agent", &self.agent)]) {
            let named = of.attributes.values().filter_map(Field::target);
            for kind in named.chain(of.member_of.iter().map(String::as_str)) {
                if !known(kind) {
                    refuse(
                        format!("`{owner}` names the type `{kind}`, which is not declared"),
                        "declare it",
                    );
                }
            }
        }
        for (name, field) in &self.facts {
            if field.target().is_some_and(|kind| !known(kind)) {
                refuse(
                    format!("the fact `{name}` names a type that is not declared"),
                    "declare it",
                );
            }
        }
        findings
    }
}

fn record_type(fields: &BTreeMap<String, Field>, more: &[(String, String)]) -> String {
    let mut out = String::from("{");
    let own = fields.iter().map(|(name, field)| {
        let optional = if field.optional { "?" } else { "" };
        (format!("{}{optional}", quoted(name)), field.cedar())
    });
    for (index, (name, kind)) in more.iter().cloned().chain(own).enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(out, "{comma}{name}: {kind}");
    }
    out.push('}');
    out
}

impl EntityType {
    /// Ends a declaration of which `entity NAME` is written.
    pub(crate) fn finish(&self, out: &mut String, parents: &[&str], more: &[(String, String)]) {
        let mut all: BTreeSet<&str> = self.member_of.iter().map(String::as_str).collect();
        all.extend(parents);
        if !all.is_empty() {
            let all: Vec<&str> = all.into_iter().collect();
            let _ = write!(out, " in [{}]", all.join(", "));
        }
        if !self.attributes.is_empty() || !more.is_empty() {
            let _ = write!(out, " {}", record_type(&self.attributes, more));
        }
        out.push_str(";\n");
    }
}

/// The name of an entity: its type and its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityName {
    /// Its type, such as `Group`.
    pub kind: String,
    /// Its id.
    pub id: String,
}

impl EntityName {
    /// Names an entity.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            id: id.into(),
        }
    }
}

/// The value of a [`Field`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldValue {
    /// A plain value.
    Value(AttributeValue),
    /// An entity.
    Entity(EntityName),
    /// A set of entities.
    Entities(BTreeSet<EntityName>),
}

impl<V: Into<AttributeValue>> From<V> for FieldValue {
    fn from(value: V) -> Self {
        Self::Value(value.into())
    }
}

impl From<EntityName> for FieldValue {
    fn from(name: EntityName) -> Self {
        Self::Entity(name)
    }
}

impl From<BTreeSet<EntityName>> for FieldValue {
    fn from(names: BTreeSet<EntityName>) -> Self {
        Self::Entities(names)
    }
}

/// An entity with what is known of it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvidedEntity {
    /// Its name.
    pub name: EntityName,
    /// The entities of which it is a direct member. Each of them must be provided too, except
    /// for roles.
    #[serde(default)]
    pub member_of: BTreeSet<EntityName>,
    /// Its attributes.
    #[serde(default)]
    pub attributes: BTreeMap<String, FieldValue>,
}

impl ProvidedEntity {
    /// An entity without attributes that is a member of nothing.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            name: EntityName::new(kind, id),
            member_of: BTreeSet::new(),
            attributes: BTreeMap::new(),
        }
    }

    /// Makes it a member of another entity.
    pub fn member_of(mut self, kind: impl Into<String>, id: impl Into<String>) -> Self {
        self.member_of.insert(EntityName::new(kind, id));
        self
    }

    /// Sets an attribute.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<FieldValue>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }
}

/// What an [`EntityProvider`] said, or that it could not be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provided {
    pub(crate) entities: Vec<ProvidedEntity>,
    pub(crate) facts: BTreeMap<String, FieldValue>,
    pub(crate) fault: Option<String>,
}

impl Provided {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nobody could be asked. Every question that is put with it is answered with a denial.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            fault: Some(why.into()),
            ..Self::default()
        }
    }

    /// Adds an entity. A `User` or `Agent` adds to the one that takes part in the call; its roles
    /// replace those that the [`User`] came with, since the provider is asked later.
    pub fn entity(mut self, entity: ProvidedEntity) -> Self {
        self.entities.push(entity);
        self
    }

    /// Sets a fact: `context.app.NAME`.
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<FieldValue>) -> Self {
        self.facts.insert(name.into(), value.into());
        self
    }

    pub(crate) fn knows_user(&self, id: &str) -> bool {
        let is_user = |entity: &ProvidedEntity| entity.name.kind == "User" && entity.name.id == id;
        self.entities.iter().any(is_user)
    }
}

/// On which occasion a provider is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Occasion {
    /// A call is decided.
    Decision,
    /// Somebody wants to approve a call.
    Vote,
    /// A call is about to be executed.
    Release,
}

/// What a provider is asked about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The occasion.
    pub occasion: Occasion,
    /// The call, without what the provider is to say.
    pub call: Call<'a>,
    /// Those who approved or want to.
    pub approvers: &'a [User],
}

/// Why a provider could not answer.
pub type ProviderError = Box<dyn std::error::Error + Send + Sync>;

/// What a provider answers, when it is ready.
pub type Providing<'a> = Pin<Box<dyn Future<Output = Result<Provided, ProviderError>> + Send + 'a>>;

/// The application's knowledge of people, groups and resources.
///
/// Where its extension says anything about `User` or `Agent`, it must provide the entities of the
/// agent and of everyone who takes part in a call: without them the call is denied, and the votes of
/// approvers whom it does not know count for nothing.
///
/// ```
/// use agentkit_policy::{About, AttributeType, EntityProvider, EntityType, Extension, Field};
/// use agentkit_policy::{Provided, ProvidedEntity, Providing};
///
/// struct Groups;
///
/// impl EntityProvider for Groups {
///     fn extension(&self) -> Extension {
///         Extension::default()
///             .entity("Group", EntityType::new())
///             .user(EntityType::new().member_of("Group"))
///             .fact("order_owner", Field::value(AttributeType::String))
///     }
///
///     fn provide<'a>(&'a self, about: About<'a>) -> Providing<'a> {
///         Box::pin(async move {
///             let id = about.call.user.id.clone();
///             Ok(Provided::new()
///                 .entity(ProvidedEntity::new("Group", "support"))
///                 .entity(ProvidedEntity::new("User", id).member_of("Group", "support"))
///                 .fact("order_owner", "ann"))
///         })
///     }
/// }
/// ```
pub trait EntityProvider: Send + Sync {
    /// What it adds to the vocabulary; goes into
    /// [`Settings::extension`](crate::Settings::extension) and is part of every digest.
    fn extension(&self) -> Extension;

    /// Says what is known now about those who take part in a call.
    fn provide<'a>(&'a self, about: About<'a>) -> Providing<'a>;
}

/// Asks a provider and gives up when `deadline` is over. Whatever goes wrong becomes a
/// [`Provided::failed`], which denies.
///
/// `deadline` is any future that ends in time, such as `tokio::time::sleep`.
pub async fn ask_provider(
    provider: &dyn EntityProvider,
    about: About<'_>,
    deadline: impl Future<Output = ()>,
) -> Provided {
    let mut answer = provider.provide(about);
    let mut deadline = std::pin::pin!(deadline);
    std::future::poll_fn(move |context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(answer.unwrap_or_else(|error| {
                Provided::failed(format!("the entity provider failed: {error}"))
            }));
        }
        deadline
            .as_mut()
            .poll(context)
            .map(|()| Provided::failed("the entity provider did not answer in time"))
    })
    .await
}
