#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may")]

mod generated;

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
