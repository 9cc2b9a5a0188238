//! Generated schemas, and values that fit them or do not: Cedar and this crate take the same.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use cedar_policy::{Context, EntityUid, Request, RestrictedExpression, Schema};
use cedar_policy_core::ast;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::super::ContextType;
use crate::cedar::{self, Value as Seen};
use crate::entities::uid;

/// The types that schemas are made of, and that entities in values are of.
const ENTITIES: &str = "
    entity User; entity Agent; entity Colour enum [\"red\", \"blue\"]; entity Size enum [\"red\"];
    namespace A { entity Member; } namespace B { entity Member; }
";
const STANDARD: [&str; 3] = ["User", "A::Member", "B::Member"];
const ENUMERATED: [&str; 2] = ["Colour", "Size"];
const NAMES: [&str; 7] = ["", "a", "b", "b_count", "if", "ü \"q\"", "zz"];

#[derive(Clone, Debug)]
enum Declared {
    Bool,
    Long,
    Text,
    Datetime,
    Decimal,
    Ip,
    Entity(&'static str),
    Set(Box<Self>),
    /// What is there, and whether it must be.
    Record(BTreeMap<&'static str, (bool, Self)>),
}

#[derive(Clone, Debug)]
enum Given {
    Bool(bool),
    Long(i64),
    Text(String),
    Datetime(&'static str),
    Decimal(&'static str),
    Ip(&'static str),
    Entity(&'static str, &'static str),
    Set(Vec<Self>),
    Record(BTreeMap<&'static str, Self>),
}

impl Declared {
    fn text(&self) -> String {
        match self {
            Self::Bool => "Bool".to_owned(),
            Self::Long => "Long".to_owned(),
            Self::Text => "String".to_owned(),
            Self::Datetime => "datetime".to_owned(),
            Self::Decimal => "decimal".to_owned(),
            Self::Ip => "ipaddr".to_owned(),
            Self::Entity(name) => (*name).to_owned(),
            Self::Set(item) => format!("Set<{}>", item.text()),
            Self::Record(attributes) => {
                let mut text = "{".to_owned();
                for (name, (required, of)) in attributes {
                    let mark = if *required { "" } else { "?" };
                    let name = crate::shape::quoted(name);
                    let _ = write!(text, "{name}{mark}: {}, ", of.text());
                }
                text + "}"
            }
        }
    }
}

impl Given {
    fn seen(&self) -> Seen {
        match self {
            Self::Bool(value) => Seen::bool(*value),
            Self::Long(value) => Seen::long(*value),
            Self::Text(value) => Seen::text(value),
            Self::Datetime(value) => Seen::datetime(value).unwrap(),
            Self::Decimal(value) => Seen::decimal(value).unwrap(),
            Self::Ip(value) => Seen::ip(value).unwrap(),
            Self::Entity(kind, id) => Seen::entity(&uid(kind, id).unwrap()),
            Self::Set(items) => Seen::set(items.iter().map(Self::seen)),
            Self::Record(pairs) => {
                Seen::record(pairs.iter().map(|(name, value)| (*name, value.seen()))).unwrap()
            }
        }
    }

    /// The same by way of Cedar's public interface.
    fn expression(&self) -> RestrictedExpression {
        match self {
            Self::Bool(value) => RestrictedExpression::new_bool(*value),
            Self::Long(value) => RestrictedExpression::new_long(*value),
            Self::Text(value) => RestrictedExpression::new_string(value.clone()),
            Self::Datetime(value) => RestrictedExpression::new_datetime(value),
            Self::Decimal(value) => RestrictedExpression::new_decimal(value),
            Self::Ip(value) => RestrictedExpression::new_ip(value),
            Self::Entity(kind, id) => RestrictedExpression::new_entity_uid(uid(kind, id).unwrap()),
            Self::Set(items) => RestrictedExpression::new_set(items.iter().map(Self::expression)),
            Self::Record(pairs) => {
                let pairs = pairs.iter();
                let pairs = pairs.map(|(name, value)| ((*name).to_owned(), value.expression()));
                RestrictedExpression::new_record(pairs).unwrap()
            }
        }
    }
}

fn entity_name() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        prop::sample::select(&STANDARD[..]),
        prop::sample::select(&ENUMERATED[..])
    ]
}

fn declared() -> impl Strategy<Value = Declared> {
    let leaf = prop_oneof![
        Just(Declared::Bool),
        Just(Declared::Long),
        Just(Declared::Text),
        Just(Declared::Datetime),
        Just(Declared::Decimal),
        Just(Declared::Ip),
        entity_name().prop_map(Declared::Entity),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            inner.clone().prop_map(|item| Declared::Set(Box::new(item))),
            record(inner),
        ]
    })
}

fn record(inner: impl Strategy<Value = Declared>) -> impl Strategy<Value = Declared> {
    let attribute = (any::<bool>(), inner);
    prop::collection::btree_map(prop::sample::select(&NAMES[..]), attribute, 0..6)
        .prop_map(Declared::Record)
}

fn long() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), Just(0)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("red".to_owned()),
        Just("1.5".to_owned())
    ]
}

fn datetime() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["2026-01-31", "0000-01-01T00:00:00.000Z", "9999-12-31"][..])
}

fn decimal() -> impl Strategy<Value = &'static str> {
    let extremes = ["0.0", "922337203685477.5807", "-922337203685477.5808"];
    prop::sample::select(extremes.to_vec())
}

fn ip() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["10.0.0.1", "10.0.0.0/8", "::1"][..])
}

fn scalar() -> BoxedStrategy<Given> {
    let kinds = [
        "User",
        "Agent",
        "A::Member",
        "Colour",
        "Size",
        "Action",
        "None",
    ];
    let ids = ["red", "blue", "green", "t", "other"];
    prop_oneof![
        any::<bool>().prop_map(Given::Bool),
        long().prop_map(Given::Long),
        text().prop_map(Given::Text),
        datetime().prop_map(Given::Datetime),
        decimal().prop_map(Given::Decimal),
        ip().prop_map(Given::Ip),
        (
            prop::sample::select(kinds.to_vec()),
            prop::sample::select(ids.to_vec())
        )
            .prop_map(|(kind, id)| Given::Entity(kind, id)),
    ]
    .boxed()
}

/// Anything, whatever the schema says.
fn given() -> BoxedStrategy<Given> {
    scalar()
        .prop_recursive(2, 12, 4, |inner| {
            let pairs =
                prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Given::Set),
                pairs.prop_map(Given::Record)
            ]
        })
        .boxed()
}

/// A value of the type; one part in `1 / bent` is not of it.
fn of(declared: &Declared, bent: f64) -> BoxedStrategy<Given> {
    let fits = match declared {
        Declared::Bool => any::<bool>().prop_map(Given::Bool).boxed(),
        Declared::Long => long().prop_map(Given::Long).boxed(),
        Declared::Text => text().prop_map(Given::Text).boxed(),
        Declared::Datetime => datetime().prop_map(Given::Datetime).boxed(),
        Declared::Decimal => decimal().prop_map(Given::Decimal).boxed(),
        Declared::Ip => ip().prop_map(Given::Ip).boxed(),
        Declared::Entity(kind) => {
            let kind = *kind;
            let ids = match kind {
                "Colour" => vec!["red", "blue"],
                "Size" => vec!["red"],
                _ => vec!["red", "green", "other"],
            };
            prop::sample::select(ids)
                .prop_map(move |id| Given::Entity(kind, id))
                .boxed()
        }
        Declared::Set(item) => prop::collection::vec(of(item, bent), 0..4)
            .prop_map(Given::Set)
            .boxed(),
        Declared::Record(attributes) => pairs(attributes, bent).prop_map(Given::Record).boxed(),
    };
    if bent > 0.0 {
        (prop::bool::weighted(bent), fits, given())
            .prop_map(|(bent, fits, any)| if bent { any } else { fits })
            .boxed()
    } else {
        fits
    }
}

fn pairs(
    attributes: &BTreeMap<&'static str, (bool, Declared)>,
    bent: f64,
) -> BoxedStrategy<BTreeMap<&'static str, Given>> {
    let mut all = Just(BTreeMap::new()).boxed();
    for (name, (required, declared)) in attributes {
        let (name, required) = (*name, *required);
        let present = prop::bool::weighted(if required { 1.0 - bent } else { 0.5 });
        all = (all, present, of(declared, bent))
            .prop_map(move |(mut all, present, value)| {
                if present {
                    all.insert(name, value);
                }
                all
            })
            .boxed();
    }
    // A stranger, or another value under a name that is declared.
    let stranger = (prop::sample::select(&NAMES[..]), given());
    (all, prop::bool::weighted(bent / 2.0), stranger)
        .prop_map(|(mut all, bent, (name, value))| {
            if bent {
                all.insert(name, value);
            }
            all
        })
        .boxed()
}

/// Who is asked about, by whom, and the context.
type Question = (EntityUid, EntityUid, BTreeMap<&'static str, Given>);

/// A schema with one action, and what that action is asked with.
fn asked() -> impl Strategy<Value = (String, Vec<Question>)> {
    let kinds = || prop::sample::subsequence(vec!["User", "Agent", "Colour", "A::Member"], 1..=3);
    (kinds(), kinds(), record(declared())).prop_flat_map(|(principals, resources, declared)| {
        let schema = format!(
            "{ENTITIES} action \"t\", \"other\" appliesTo {{ principal: [{}], resource: [{}], \
             context: {} }};",
            principals.join(", "),
            resources.join(", "),
            declared.text()
        );
        let attributes = match declared {
            Declared::Record(attributes) => attributes,
            _ => BTreeMap::new(),
        };
        let context = prop_oneof![
            pairs(&attributes, 0.0),
            pairs(&attributes, 0.05),
            pairs(&attributes, 0.3)
        ];
        let question = (who(principals), who(resources), context);
        (Just(schema), prop::collection::vec(question, 8))
    })
}

/// Mostly someone whom the schema has.
fn who(declared: Vec<&'static str>) -> impl Strategy<Value = EntityUid> {
    let other = ["User", "Agent", "Colour", "A::Member", "B::Member", "None"];
    let kind = prop_oneof![
        8 => prop::sample::select(declared),
        1 => prop::sample::select(other.to_vec())
    ];
    let id = prop::sample::select(&["red", "red", "green"][..]);
    (kind, id).prop_map(|(kind, id)| uid(kind, id).unwrap())
}

/// What is made without Cedar's parser is what Cedar makes, and is taken where Cedar takes it.
fn agree(
    (schema, of): (&Schema, &ContextType),
    (principal, resource, context): &Question,
) -> Result<bool, TestCaseError> {
    let pairs = context.iter();
    let own = cedar::context(pairs.clone().map(|(name, value)| (*name, value.seen()))).unwrap();
    let public = pairs.map(|(name, value)| ((*name).to_owned(), value.expression()));
    let public = Context::from_pairs(public).unwrap();
    let inside = |context: &Context| {
        let context: &ast::Context = context.as_ref();
        ast::PartialValue::from(context.clone())
    };
    prop_assert_eq!(inside(&own), inside(&public));
    let cedars = Request::new(
        principal.clone(),
        uid("Action", "t").unwrap(),
        resource.clone(),
        public,
        Some(schema),
    );
    let ours = of.check(principal, resource, &own);
    prop_assert_eq!(ours.is_ok(), cedars.is_ok(), "{:?}, {:?}", ours, cedars);
    Ok(ours.is_ok())
}

#[test]
fn of_every_schema_the_same_is_taken_and_refused() {
    let (taken, refused) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    };
    let result = TestRunner::new(config).run(&asked(), |(schema, questions)| {
        let (schema, _) = Schema::from_cedarschema_str(&schema).unwrap();
        let of = ContextType::of(&schema, &uid("Action", "t").unwrap()).unwrap();
        for question in &questions {
            let seen = if agree((&schema, &of), question)? {
                &taken
            } else {
                &refused
            };
            seen.set(seen.get() + 1);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let (taken, refused) = (taken.get(), refused.get());
    assert!(
        taken > 500 && refused > 500,
        "{taken} taken, {refused} refused"
    );
}
