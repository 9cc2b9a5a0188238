//! Values, contexts and entities as Cedar has them inside.
//!
//! Cedar's public interface takes every value as an expression: the names of constructors are
//! parsed, the expressions are evaluated anew for each question, and the closure of hierarchies
//! that are closed already is computed again. That was most of what a decision cost. What is made
//! here skips that work and no check: each context is held against the schema by
//! [`crate::context_type`], which says why that is as safe as Cedar's own check.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

use cedar_policy::{Context, Entities, EntityUid};
use cedar_policy_core::ast::{self, ExtensionFunction, PartialValue, ValueKind};
use cedar_policy_core::entities::{Entities as Store, NoEntitiesSchema, TCComputation};
use cedar_policy_core::extensions::Extensions;

/// A value that policies see. Cloning one is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value(ast::Value);

type Fault = String;

impl Value {
    pub(crate) fn bool(value: bool) -> Self {
        Self(value.into())
    }

    pub(crate) fn long(value: i64) -> Self {
        Self(value.into())
    }

    pub(crate) fn text(value: &str) -> Self {
        Self(value.into())
    }

    pub(crate) fn entity(uid: &EntityUid) -> Self {
        let uid: &ast::EntityUID = uid.as_ref();
        Self(uid.clone().into())
    }

    pub(crate) fn set(values: impl IntoIterator<Item = Self>) -> Self {
        Self(ast::Value::set(
            values.into_iter().map(|value| value.0),
            None,
        ))
    }

    /// A record; an attribute that is there twice is refused.
    pub(crate) fn record<K: AsRef<str>>(
        pairs: impl IntoIterator<Item = (K, Self)>,
    ) -> Result<Self, Fault> {
        let mut record = BTreeMap::new();
        for (name, value) in pairs {
            let name = name.as_ref();
            if record.insert(name.into(), value.0).is_some() {
                return Err(format!("the attribute `{name}` is there twice"));
            }
        }
        Ok(Self(ast::Value::record_arc(Arc::new(record), None)))
    }

    /// A `datetime`; `text` is in one of the forms that Cedar reads.
    pub(crate) fn datetime(text: &str) -> Result<Self, Fault> {
        static DATETIME: Constructor = LazyLock::new(|| constructor("datetime"));
        construct(&DATETIME, text)
    }

    /// A `decimal`; `text` is in the form that Cedar reads.
    pub(crate) fn decimal(text: &str) -> Result<Self, Fault> {
        static DECIMAL: Constructor = LazyLock::new(|| constructor("decimal"));
        construct(&DECIMAL, text)
    }

    /// An `ipaddr`; `text` is in the form that Cedar reads.
    pub(crate) fn ip(text: &str) -> Result<Self, Fault> {
        static IP: Constructor = LazyLock::new(|| constructor("ip"));
        construct(&IP, text)
    }
}

type Constructor = LazyLock<Result<&'static ExtensionFunction, Fault>>;

fn constructor(name: &str) -> Result<&'static ExtensionFunction, Fault> {
    let name = ast::Name::parse_unqualified_name(name).map_err(|error| error.to_string())?;
    Extensions::all_available()
        .func(&name)
        .map_err(|error| error.to_string())
}

fn construct(constructor: &Constructor, text: &str) -> Result<Value, Fault> {
    let function = constructor.as_ref().map_err(Clone::clone)?;
    match function.call(&[text.into()]) {
        Ok(PartialValue::Value(value)) => Ok(Value(value)),
        Ok(PartialValue::Residual(residual)) => Err(format!("`{residual}` is not a value")),
        Err(error) => Err(error.to_string()),
    }
}

/// A context; an attribute that is there twice is refused.
pub(crate) fn context(
    pairs: impl IntoIterator<Item = (&'static str, Value)>,
) -> Result<Context, Fault> {
    match Value::record(pairs)?.0.value {
        ValueKind::Record(record) => Ok(ast::Context::Value(record).into()),
        other => Err(format!("`{other}` is not a record")),
    }
}

/// An entity. Cloning one is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Entity(Arc<ast::Entity>);

impl Entity {
    /// An entity that is a direct member of `parents`.
    pub(crate) fn new(
        uid: EntityUid,
        attributes: impl IntoIterator<Item = (String, Value)>,
        parents: impl IntoIterator<Item = EntityUid>,
        tags: impl IntoIterator<Item = (String, Value)>,
    ) -> Self {
        let inside =
            |(name, Value(value)): (String, Value)| (name.into(), PartialValue::Value(value));
        Self(Arc::new(ast::Entity::new_with_attr_partial_value(
            uid.into(),
            attributes.into_iter().map(inside),
            HashSet::new(),
            parents.into_iter().map(Into::into).collect(),
            tags.into_iter().map(inside),
        )))
    }

    /// An entity that has nothing but a name.
    pub(crate) fn named(uid: EntityUid) -> Self {
        Self(Arc::new(ast::Entity::with_uid(uid.into())))
    }
}

/// Whether a store has to work out who is a member of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// Every entity that is added names all its ancestors as parents, and is an ancestor of none
    /// that is there before.
    Flat,
    /// It is computed; a circle is an error.
    Deep,
}

/// The entities of a store and others; two that differ under one name are refused.
pub(crate) fn with_entities(
    store: &Entities,
    more: impl IntoIterator<Item = Entity>,
    hierarchy: Hierarchy,
) -> Result<Entities, Fault> {
    let store: &Store = store.as_ref();
    let compute = match hierarchy {
        Hierarchy::Flat => TCComputation::AssumeAlreadyComputed,
        Hierarchy::Deep => TCComputation::ComputeNow,
    };
    let more = more.into_iter().map(|entity| entity.0);
    let extensions = Extensions::all_available();
    store
        .clone()
        .add_entities(more, None::<&NoEntitiesSchema>, compute, extensions)
        .map(Into::into)
        .map_err(|error| error.to_string())
}
