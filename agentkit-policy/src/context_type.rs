//! Whether what a question is asked with is of the types that the schema says.
//!
//! The same check as that of [`cedar_policy::Request::new`], read once from the schema when it is
//! loaded: Cedar turns each context back into an expression, twice, and copies the declaration of
//! each entity in it, which takes four times as long as evaluating a policy.

use std::collections::BTreeSet;

use cedar_policy::{Context, EntityUid, Schema};
use cedar_policy_core::ast::{self, Literal, Value, ValueKind};
use cedar_policy_core::validator::types::{BoolType, EntityKind, OpenTag, Type};
use cedar_policy_core::validator::{ValidatorEntityTypeKind, ValidatorSchema};

type Fault = String;

/// What one question may be asked with.
#[derive(Debug)]
pub(crate) struct ContextType {
    principals: Vec<ast::EntityType>,
    resources: Vec<ast::EntityType>,
    context: Of,
}

/// A type of the schema.
#[derive(Debug)]
enum Of {
    Bool,
    Long,
    Text,
    Entity {
        name: ast::EntityType,
        /// The only ids that it has, for an enumerated type.
        ids: Option<BTreeSet<String>>,
    },
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
        Ok(Self {
            principals: declared.principals().cloned().collect(),
            resources: declared.resources().cloned().collect(),
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
            let own: &ast::EntityUID = uid.as_ref();
            if !declared.contains(own.entity_type()) {
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
                let ids = match schema.get_entity_type(name).map(|of| &of.kind) {
                    Some(ValidatorEntityTypeKind::Enum(ids)) => {
                        Some(ids.iter().map(|id| id.as_ref().to_owned()).collect())
                    }
                    Some(ValidatorEntityTypeKind::Standard(_)) => None,
                    _ => return other(),
                };
                Self::Entity {
                    name: name.clone(),
                    ids,
                }
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
            (Self::Entity { name, ids }, ValueKind::Lit(Literal::EntityUID(uid))) => {
                uid.entity_type() == name
                    && ids.as_ref().is_none_or(|ids| {
                        let id: &str = uid.eid().as_ref();
                        ids.contains(id)
                    })
            }
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
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use cedar_policy::Request;

    use super::*;
    use crate::cedar::{self, Value as Seen};
    use crate::entities::uid;

    const SCHEMA: &str = r#"
        entity User; entity Agent; entity Other; entity Colour enum ["red", "blue"];
        action "t" appliesTo { principal: [User], resource: [Agent], context: {
            "bool": Bool, "long"?: Long, "text": String, "who": User, "colour"?: Colour,
            "many": Set<Colour>, "at": datetime, "price"?: decimal, "from"?: ipaddr,
            "inner": {"a": Long, "b"?: {"c": String}}
        } };
    "#;

    fn named(kind: &str, id: &str) -> Seen {
        Seen::entity(&uid(kind, id).unwrap())
    }

    fn values() -> Vec<Seen> {
        let record = |pairs: &[(&str, Seen)]| Seen::record(pairs.iter().cloned()).unwrap();
        let c = record(&[("c", Seen::text("x"))]);
        vec![
            Seen::bool(true),
            Seen::long(7),
            Seen::text("red"),
            named("User", "u"),
            named("Other", "u"),
            named("Colour", "red"),
            named("Colour", "green"),
            Seen::set([]),
            Seen::set([named("Colour", "red"), named("Colour", "blue")]),
            Seen::set([named("Colour", "red"), named("Colour", "green")]),
            Seen::set([named("Colour", "red"), Seen::long(1)]),
            Seen::datetime("2026-01-31T12:00:00.000Z").unwrap(),
            Seen::decimal("1.5").unwrap(),
            Seen::ip("10.0.0.1").unwrap(),
            record(&[]),
            record(&[("a", Seen::long(1))]),
            record(&[("a", Seen::long(1)), ("b", c.clone())]),
            record(&[
                ("a", Seen::long(1)),
                ("b", record(&[("c", Seen::bool(true))])),
            ]),
            record(&[("a", Seen::long(1)), ("b", record(&[]))]),
            record(&[("a", Seen::long(1)), ("b", c.clone()), ("d", Seen::long(1))]),
            record(&[("b", c)]),
        ]
    }

    /// One attribute after the other is left out, takes every kind of value, and gets a stranger
    /// beside it: what is taken here is what Cedar takes.
    #[test]
    fn contexts_are_taken_and_refused_as_cedar_does() {
        let (schema, _) = Schema::from_cedarschema_str(SCHEMA).unwrap();
        let action = uid("Action", "t").unwrap();
        let of = ContextType::of(&schema, &action).unwrap();
        let all = values();
        let pick = |index: usize| all.get(index).unwrap().clone();
        let base = [
            ("at", pick(11)),
            ("bool", pick(0)),
            ("colour", pick(5)),
            ("from", pick(13)),
            ("inner", pick(16)),
            ("long", pick(1)),
            ("many", pick(8)),
            ("price", pick(12)),
            ("text", pick(2)),
            ("who", pick(3)),
        ];
        let (mut taken, mut refused) = (0, 0);
        let mut compare =
            |principal: &EntityUid, resource: &EntityUid, pairs: Vec<(&'static str, Seen)>| {
                let context = cedar::context(pairs.clone()).unwrap();
                let ours = of.check(principal, resource, &context);
                let cedars = Request::new(
                    principal.clone(),
                    action.clone(),
                    resource.clone(),
                    context,
                    Some(&schema),
                );
                assert_eq!(
                    ours.is_ok(),
                    cedars.is_ok(),
                    "{ours:?}, {cedars:?}: {pairs:?}"
                );
                match ours {
                    Ok(()) => taken += 1,
                    Err(_) => refused += 1,
                }
            };
        let (user, agent) = (uid("User", "u").unwrap(), uid("Agent", "a").unwrap());
        compare(&user, &agent, base.to_vec());
        compare(&agent, &agent, base.to_vec());
        compare(&user, &user, base.to_vec());
        for (index, (name, _)) in base.iter().enumerate() {
            let mut less = base.to_vec();
            less.remove(index);
            compare(&user, &agent, less.clone());
            for value in &all {
                let mut other = less.clone();
                other.push((name, value.clone()));
                compare(&user, &agent, other);
            }
        }
        for stranger in ["a", "between", "zzz"] {
            let mut more = base.to_vec();
            more.push((stranger, Seen::long(1)));
            compare(&user, &agent, more);
        }
        assert!(
            taken >= 15 && refused > 150,
            "{taken} taken, {refused} refused"
        );
    }
}
