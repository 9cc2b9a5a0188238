//! The entities of a call: who takes part, what they are members of, and what the application adds.
//!
//! Everything that can be named must be there: Cedar reads an entity that is missing as one without
//! attributes and parents, and a forbid on its group would not match.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cedar_policy::{Entities, EntityId, EntityTypeName, EntityUid};

use crate::call::User;
use crate::cedar::{Entity, Hierarchy, Value, with_entities};
use crate::declaration::Settings;
use crate::provider::{
    EntityName, EntityType, Extension, Field, FieldType, FieldValue, Provided, ProvidedEntity,
};
use crate::shape::string_fits;
use crate::slice::Slice;

type Fault = String;

pub(crate) fn user_uid(id: &str) -> Result<EntityUid, Fault> {
    uid("User", id)
}

pub(crate) fn uid(kind: &str, id: &str) -> Result<EntityUid, Fault> {
    let shown = || kind.to_lowercase();
    if id.is_empty() {
        return Err(format!("the id of the {} is empty", shown()));
    }
    string_fits(id).map_err(|message| format!("id of the {}: {message}", shown()))?;
    let kind = type_name(kind)?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

thread_local! {
    /// Parsing a name takes as long as evaluating a policy.
    static TYPE_NAMES: RefCell<HashMap<String, EntityTypeName>> = RefCell::new(HashMap::new());
}

/// The type of entities with this name.
pub(crate) fn type_name(name: &str) -> Result<EntityTypeName, Fault> {
    /// More types than any set of tools has; a host that loads set after set must not fill memory.
    const MOST: usize = 4_096;
    if let Some(known) = TYPE_NAMES.with_borrow(|names| names.get(name).cloned()) {
        return Ok(known);
    }
    let parsed: EntityTypeName = name
        .parse()
        .map_err(|error: cedar_policy::ParseErrors| error.to_string())?;
    TYPE_NAMES.with_borrow_mut(|names| {
        if names.len() >= MOST {
            names.clear();
        }
        names.insert(name.to_owned(), parsed.clone());
    });
    Ok(parsed)
}

/// What the application's provider said, checked against what it declared.
pub(crate) struct Known<'a> {
    extension: Option<&'a Extension>,
    provided: Option<&'a Provided>,
}

impl<'a> Known<'a> {
    pub(crate) fn of(
        extension: Option<&'a Extension>,
        provided: Option<&'a Provided>,
    ) -> Result<Self, Fault> {
        if let Some(why) = provided.and_then(|provided| provided.fault.as_ref()) {
            return Err(why.clone());
        }
        let extension = extension.filter(|extension| !extension.is_empty());
        match (extension, provided) {
            (Some(_), None) => Err(
                "policies rely on the entity provider, and it was not asked; ask it and hand in \
                 its answer"
                    .to_owned(),
            ),
            (extension, provided) => Ok(Self {
                extension,
                provided,
            }),
        }
    }

    /// The record `context.app`.
    pub(crate) fn app(&self) -> Result<Option<Value>, Fault> {
        let (Some(extension), Some(provided)) = (self.extension, self.provided) else {
            return Ok(None);
        };
        if extension.facts.is_empty() && provided.facts.is_empty() {
            return Ok(None);
        }
        let pairs = fields("context.app", &extension.facts, &provided.facts)?;
        Value::record(pairs).map(Some)
    }

    fn declared(&self, kind: &str) -> Option<&'a EntityType> {
        let extension = self.extension?;
        match kind {
            "User" => Some(&extension.user),
            "Agent" => Some(&extension.agent),
            kind => extension.types.get(kind),
        }
    }

    fn entities(&self) -> &'a [ProvidedEntity] {
        match (self.extension, self.provided) {
            (Some(_), Some(provided)) => &provided.entities,
            _ => &[],
        }
    }

    fn find(&self, kind: &str, id: &str) -> Option<&'a ProvidedEntity> {
        let name = |of: &&ProvidedEntity| of.name.kind == kind && of.name.id == id;
        self.entities().iter().find(name)
    }
}

/// Values in the order of their declaration, each of its declared type.
fn fields(
    owner: &str,
    declared: &BTreeMap<String, Field>,
    values: &BTreeMap<String, FieldValue>,
) -> Result<Vec<(String, Value)>, Fault> {
    if let Some(name) = values.keys().find(|name| !declared.contains_key(*name)) {
        return Err(format!(
            "entity provider: `{owner}` has `{name}`, which its extension does not declare"
        ));
    }
    let mut pairs = Vec::with_capacity(values.len());
    for (name, field) in declared {
        let Some(value) = values.get(name) else {
            if field.optional {
                continue;
            }
            return Err(format!(
                "entity provider: `{owner}` lacks `{name}`, which its extension declares"
            ));
        };
        let value = match (&field.of, value) {
            (FieldType::Value(kind), FieldValue::Value(value)) => kind.map(value),
            (FieldType::Entity(kind), FieldValue::Entity(name)) => {
                reference(kind, name).map(|uid| Value::entity(&uid))
            }
            (FieldType::Entities(kind), FieldValue::Entities(names)) => {
                let value = |name| reference(kind, name).map(|uid| Value::entity(&uid));
                let names: Result<Vec<_>, Fault> = names.iter().map(value).collect();
                names.map(Value::set)
            }
            (of, _) => Err(format!("the value is not of its declared type {of:?}")),
        };
        let value = value.map_err(|why| format!("entity provider: `{owner}.{name}`: {why}"))?;
        pairs.push((name.clone(), value));
    }
    Ok(pairs)
}

fn reference(kind: &str, name: &EntityName) -> Result<EntityUid, Fault> {
    if name.kind != kind {
        return Err(format!("`{}` is not a `{kind}`", name.kind));
    }
    uid(&name.kind, &name.id)
}

/// The entities of a call while they are gathered.
pub(crate) struct Gathering<'a> {
    settings: &'a Settings,
    known: &'a Known<'a>,
    roles: BTreeSet<String>,
    entities: Vec<Entity>,
    present: HashSet<(String, String)>,
}

/// The entities of a call.
pub(crate) struct People {
    entities: Entities,
}

impl People {
    /// Begins with the agent.
    #[expect(clippy::new_ret_no_self, reason = "they are gathered first")]
    pub(crate) fn new<'a>(
        settings: &'a Settings,
        known: &'a Known<'a>,
        agent: &str,
    ) -> Result<Gathering<'a>, Fault> {
        let mut gathering = Gathering {
            settings,
            known,
            roles: BTreeSet::new(),
            entities: Vec::new(),
            present: HashSet::new(),
        };
        let said = known.find("Agent", agent);
        gathering.entity("Agent", agent, Vec::new(), said, Vec::new())?;
        Ok(gathering)
    }

    pub(crate) fn entities(&self) -> &Entities {
        &self.entities
    }

    pub(crate) fn holds(&self, uid: &EntityUid) -> bool {
        self.entities.get(uid).is_some()
    }

    /// Adds someone who is a member of nothing.
    #[cfg(test)]
    pub(crate) fn add(&mut self, entity: Entity) -> Result<(), Fault> {
        self.entities = with_entities(&self.entities, [entity], Hierarchy::Flat)?;
        Ok(())
    }
}

impl Gathering<'_> {
    pub(crate) fn add(&mut self, user: &User) -> Result<(), Fault> {
        let mut attributes = Vec::new();
        for (name, kind) in &self.settings.user_attributes {
            if let Some(value) = user.attributes.get(name) {
                let value = kind
                    .map(value)
                    .map_err(|why| format!("attribute `{name}` of user `{}`: {why}", user.id))?;
                attributes.push((name.clone(), value));
            }
        }
        let said = self.known.find("User", &user.id);
        // The provider is asked later than whoever made the record of the user.
        let roles: Vec<String> = match said {
            Some(said) => said
                .member_of
                .iter()
                .filter(|name| name.kind == "Role")
                .map(|name| name.id.clone())
                .collect(),
            None => user.roles.iter().cloned().collect(),
        };
        self.entity("User", &user.id, attributes, said, roles)
    }

    fn entity(
        &mut self,
        kind: &str,
        id: &str,
        mut attributes: Vec<(String, Value)>,
        said: Option<&ProvidedEntity>,
        roles: Vec<String>,
    ) -> Result<(), Fault> {
        let own = uid(kind, id)?;
        let mut parents = Vec::with_capacity(roles.len());
        for role in &roles {
            parents.push(uid("Role", role)?);
        }
        self.roles.extend(roles);
        let declared = self.known.declared(kind);
        let shown = || format!("{kind}::\"{id}\"");
        if said.is_none() && declared.is_some_and(|declared| *declared != EntityType::default()) {
            // Without groups and attributes, forbids on them would not match.
            return Err(format!("entity provider: it says nothing of `{}`", shown()));
        }
        if let (Some(said), Some(declared)) = (said, declared) {
            let shown = shown();
            attributes.extend(fields(&shown, &declared.attributes, &said.attributes)?);
            for parent in said.member_of.iter().filter(|parent| parent.kind != "Role") {
                if !declared.member_of.contains(&parent.kind) {
                    return Err(format!(
                        "entity provider: `{shown}` is a member of a `{}`, which its extension \
                         does not declare",
                        parent.kind
                    ));
                }
                parents.push(uid(&parent.kind, &parent.id)?);
            }
        }
        if !self.present.insert((kind.to_owned(), id.to_owned())) {
            return Err(format!("the entity `{kind}::\"{id}\"` is there twice"));
        }
        self.entities
            .push(Entity::new(own, attributes, parents, []));
        Ok(())
    }

    /// Adds what else was provided, what the arguments name, roles and actions.
    pub(crate) fn finish(mut self, slice: &Slice, mapped: Vec<Entity>) -> Result<People, Fault> {
        for said in self.known.entities() {
            let EntityName { kind, id } = &said.name;
            let taken = self.present.contains(&(kind.clone(), id.clone()));
            match kind.as_str() {
                "User" | "Agent" if taken => continue,
                "Role" => {
                    return Err("entity provider: roles need not be provided, name them in \
                                `member_of`"
                        .to_owned());
                }
                _ => {}
            }
            if self.known.declared(kind).is_none() {
                return Err(format!(
                    "entity provider: the type `{kind}` is not declared by its extension"
                ));
            }
            let roles = said.member_of.iter().filter(|name| name.kind == "Role");
            let roles = roles.map(|name| name.id.clone()).collect();
            self.entity(kind, id, Vec::new(), Some(said), roles)?;
        }
        self.refuse_dangling()?;
        for role in &self.roles {
            self.entities.push(Entity::named(uid("Role", role)?));
        }
        // People are members of roles, and roles, agents and what arguments name of nothing; only
        // a provider knows of members of members.
        let hierarchy = if self.known.entities().is_empty() {
            Hierarchy::Flat
        } else {
            Hierarchy::Deep
        };
        let all = self.entities.into_iter().chain(mapped);
        let entities = with_entities(&slice.always, all, hierarchy)?;
        // They conform by construction; a build for development says so where they do not.
        #[cfg(debug_assertions)]
        conform(slice, &entities)?;
        Ok(People { entities })
    }

    /// Every entity that the provider names is one that it provides.
    fn refuse_dangling(&self) -> Result<(), Fault> {
        let Some(provided) = self.known.provided else {
            return Ok(());
        };
        let named = |value: &FieldValue| -> Vec<EntityName> {
            match value {
                FieldValue::Value(_) => Vec::new(),
                FieldValue::Entity(name) => vec![name.clone()],
                FieldValue::Entities(names) => names.iter().cloned().collect(),
            }
        };
        let facts = provided.facts.values().flat_map(named);
        let of_entities = self.known.entities().iter().flat_map(|entity| {
            let inside = entity.attributes.values().flat_map(named);
            inside.chain(entity.member_of.iter().cloned())
        });
        let dangling = facts
            .chain(of_entities)
            .find(|name| match name.kind.as_str() {
                "Role" => false,
                kind => !self.present.contains(&(kind.to_owned(), name.id.clone())),
            });
        match dangling {
            Some(name) => Err(format!(
                "entity provider: it names `{}::\"{}\"` and does not provide it",
                name.kind, name.id
            )),
            None => Ok(()),
        }
    }
}

#[cfg(debug_assertions)]
fn conform(slice: &Slice, entities: &Entities) -> Result<(), Fault> {
    let others = entities
        .iter()
        .filter(|entity| entity.uid().type_name().to_string() != "Action");
    let computed = Entities::from_entities(entities.iter().cloned(), None)
        .map_err(|error| error.to_string())?;
    if !computed.deep_eq(entities) {
        return Err("the hierarchy of the entities is not closed".to_owned());
    }
    Entities::from_entities(others.cloned(), Some(&slice.schema))
        .map(drop)
        .map_err(|error| {
            let sources =
                std::iter::successors(std::error::Error::source(&error), |error| error.source());
            let why: Vec<String> = sources.map(ToString::to_string).collect();
            format!("an entity does not conform: {error}: {}", why.join(": "))
        })
}
