//! Whether what a question is asked with is of the types that the schema says.
//!
//! [`cedar_policy::Request::new`] could be handed the schema and would say the same, but it turns
//! each context back into an expression, twice, and copies the declaration of each entity in it,
//! which takes four times as long as evaluating a policy. So the schema is read once, when it is
//! loaded, and each context is held against what was read.
//!
//! It is as safe, since
//! - a value is taken only where every part of it is of a declared type: what is not known to fit
//!   is refused, and a schema with a type that is not known here does not load;
//! - values are made in [`crate::cedar`] from Rust types, so that nothing a model wrote is read as
//!   an entity or as the call of a constructor, and none of them can hold an unknown;
//! - the tests beside this file hold it against Cedar, over generated schemas and over values that
//!   fit and that do not: both take the same and refuse the same;
//! - a build for development asks Cedar as well, for every question of every test, and denies with
//!   an error where the two differ ([`crate::ask`]).

use std::collections::BTreeSet;

use cedar_policy::{Context, EntityUid, Schema};
use cedar_policy_core::ast::{self, Literal, Value, ValueKind};
use cedar_policy_core::validator::types::{BoolType, EntityKind, OpenTag, Type};
use cedar_policy_core::validator::{ValidatorEntityTypeKind, ValidatorSchema};

type Fault = String;

/// What one question may be asked with.
#[derive(Debug)]
pub(crate) struct ContextType {
    principals: Vec<EntityOf>,
    resources: Vec<EntityOf>,
    context: Of,
}

/// A type of entities.
#[derive(Debug)]
struct EntityOf {
    name: ast::EntityType,
    /// The only ids that it has, for an enumerated type.
    ids: Option<BTreeSet<String>>,
}

/// A type of the schema.
#[derive(Debug)]
enum Of {
    Bool,
    Long,
    Text,
    Entity(EntityOf),
    Set(Box<Self>),
    Record(Vec<Attribute>),
    Extension(ast::Name),
}

#[derive(Debug)]
struct Attribute {
    name: String,
    required: bool,
    of: Of,
}

impl ContextType {
    /// Reads what a schema says about an action.
    pub(crate) fn of(schema: &Schema, action: &EntityUid) -> Result<Self, Fault> {
        let schema: &ValidatorSchema = schema.as_ref();
        let declared = schema
            .get_action_id(action.as_ref())
            .ok_or_else(|| format!("the schema does not declare `{action}`"))?;
        let context = declared
            .context_type()
            .ok_or_else(|| format!("the schema does not define `{action}`"))?;
        let read = |name| EntityOf::read(name, schema);
        Ok(Self {
            principals: declared.principals().map(read).collect::<Result<_, _>>()?,
            resources: declared.resources().map(read).collect::<Result<_, _>>()?,
            context: Of::read(context, schema)?,
        })
    }

    /// Refuses what is not of the declared types, with the path to it.
    pub(crate) fn check(
        &self,
        principal: &EntityUid,
        resource: &EntityUid,
        context: &Context,
    ) -> Result<(), Fault> {
        for (what, uid, declared) in [
            ("principal", principal, &self.principals),
            ("resource", resource, &self.resources),
        ] {
            if !declared.iter().any(|of| of.has(uid.as_ref())) {
                return Err(format!("the {what} `{uid}` is not of a declared type"));
            }
        }
        let context: &ast::Context = context.as_ref();
        let (ast::Context::Value(record), Of::Record(attributes)) = (context, &self.context) else {
            return Err("the context is not a record of values".to_owned());
        };
        check_record(attributes, record.iter())
            .map_err(|path| format!("the context is not of its declared type at `context{path}`"))
    }
}

impl EntityOf {
    fn read(name: &ast::EntityType, schema: &ValidatorSchema) -> Result<Self, Fault> {
        let ids = match schema.get_entity_type(name).map(|of| &of.kind) {
            Some(ValidatorEntityTypeKind::Enum(ids)) => {
                Some(ids.iter().map(|id| id.as_ref().to_owned()).collect())
            }
            Some(ValidatorEntityTypeKind::Standard(_)) => None,
            _ => return Err(format!("the schema does not define the type `{name}`")),
        };
        Ok(Self {
            name: name.clone(),
            ids,
        })
    }

    fn has(&self, uid: &ast::EntityUID) -> bool {
        uid.entity_type() == &self.name
            && self.ids.as_ref().is_none_or(|ids| {
                let id: &str = uid.eid().as_ref();
                ids.contains(id)
            })
    }
}

impl Of {
    fn read(declared: &Type, schema: &ValidatorSchema) -> Result<Self, Fault> {
        let other = || Err(format!("the type `{declared}` cannot be checked"));
        Ok(match declared {
            Type::Bool(BoolType::AnyBool) => Self::Bool,
            Type::Long => Self::Long,
            Type::String => Self::Text,
            Type::Entity(EntityKind::Entity(names)) => {
                let Some(name) = names.get_single_entity() else {
                    return other();
                };
                Self::Entity(EntityOf::read(name, schema)?)
            }
            Type::Set {
                element_type: Some(item),
            } => Self::Set(Box::new(Self::read(item, schema)?)),
            Type::Record {
                attrs,
                open_attributes: OpenTag::ClosedAttributes,
            } => {
                let attributes: Result<Vec<_>, Fault> = attrs
                    .iter()
                    .map(|(name, of)| {
                        Ok(Attribute {
                            name: name.to_string(),
                            required: of.is_required,
                            of: Self::read(&of.attr_type, schema)?,
                        })
                    })
                    .collect();
                // They are sorted, as are the attributes of a value.
                Self::Record(attributes?)
            }
            Type::ExtensionType { name } => Self::Extension(name.clone()),
            _ => return other(),
        })
    }

    /// The path to what is not of the type.
    fn check(&self, value: &Value) -> Result<(), String> {
        let fits = match (self, &value.value) {
            (Self::Bool, ValueKind::Lit(Literal::Bool(_)))
            | (Self::Long, ValueKind::Lit(Literal::Long(_)))
            | (Self::Text, ValueKind::Lit(Literal::String(_))) => true,
            (Self::Entity(of), ValueKind::Lit(Literal::EntityUID(uid))) => of.has(uid),
            (Self::Set(item), ValueKind::Set(items)) => {
                return items
                    .iter()
                    .try_for_each(|value| item.check(value))
                    .map_err(|path| format!("[]{path}"));
            }
            (Self::Record(attributes), ValueKind::Record(record)) => {
                return check_record(attributes, record.iter());
            }
            (Self::Extension(name), ValueKind::ExtensionValue(value)) => value.typename() == *name,
            _ => false,
        };
        if fits { Ok(()) } else { Err(String::new()) }
    }
}

/// Walks along both lists, which are sorted by name.
fn check_record<'v, K: AsRef<str> + 'v>(
    declared: &[Attribute],
    record: impl IntoIterator<Item = (&'v K, &'v Value)>,
) -> Result<(), String> {
    let mut declared = declared.iter();
    for (name, value) in record {
        let name = name.as_ref();
        loop {
            match declared.next() {
                Some(attribute) if attribute.name == name => {
                    attribute
                        .of
                        .check(value)
                        .map_err(|path| format!(".{name}{path}"))?;
                    break;
                }
                Some(absent) if absent.required => return Err(format!(".{}", absent.name)),
                Some(_) => {}
                None => return Err(format!(".{name}")),
            }
        }
    }
    match declared.find(|attribute| attribute.required) {
        Some(absent) => Err(format!(".{}", absent.name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
