//! What an application adds through its provider decides; a provider that fails, is late, is not
//! asked, or says what it did not declare denies.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may"
)]

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use agentkit_policy::{
    About, Approvals, AttributeType, Call, Decision, EntityName, EntityProvider, EntityType,
    Extension, Facts, Field, FieldValue, LoadError, Occasion, Outcome, PolicyEngine, PolicySource,
    Provided, ProvidedEntity, Providing, Settings, ToolDeclaration, User, Verdict, ask_provider,
};
use serde_json::{Value, json};

fn extension() -> Extension {
    Extension::default()
        .entity("Group", EntityType::new().member_of("Group"))
        .entity(
            "Order",
            EntityType::new()
                .attribute("owner", Field::entity("User"))
                .attribute("total_cents", Field::value(AttributeType::Long))
                .attribute("note", Field::value(AttributeType::String).or_absent()),
        )
        .user(EntityType::new().member_of("Group"))
        .agent(EntityType::new().attribute("trusted", Field::value(AttributeType::Bool)))
        .fact("order", Field::entity("Order"))
}

const POLICIES: &str = "
    @id(\"own-orders\")
    permit (principal, action == Action::\"refund\", resource)
    when { resource.trusted && context.app.order.owner == principal
           && context.input.cents <= context.app.order.total_cents };
    @id(\"with-approval\")
    permit (principal, action == Action::\"refund with approval\", resource);
    @id(\"staff\")
    permit (principal in Group::\"staff\", action == Action::\"approve refund\", resource);
    @id(\"blocked\")
    forbid (principal in Group::\"blocked\", action in Action::\"refund\", resource);
    @id(\"role\")
    forbid (principal in Role::\"intern\", action in Action::\"refund\", resource);";

fn load(extension: Extension, text: &str) -> Result<PolicyEngine, LoadError> {
    let refund = ToolDeclaration::new(
        "refund",
        json!({"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]}),
    );
    PolicyEngine::load_with(
        vec![refund],
        &[PolicySource::new("p.cedar", text)],
        Settings::default().extension(extension),
    )
}

fn engine() -> PolicyEngine {
    load(extension(), POLICIES).unwrap_or_else(|error| panic!("{error}"))
}

/// `ann` owns the order of 50.00; `staff` and `blocked` are there.
fn provided() -> Provided {
    Provided::new()
        .entity(ProvidedEntity::new("Group", "staff").member_of("Group", "everyone"))
        .entity(ProvidedEntity::new("Group", "everyone"))
        .entity(ProvidedEntity::new("Group", "blocked"))
        .entity(ProvidedEntity::new("Agent", "a").attribute("trusted", true))
        .entity(
            ProvidedEntity::new("Order", "o-1")
                .attribute("owner", EntityName::new("User", "ann"))
                .attribute("total_cents", 5000),
        )
        .fact("order", EntityName::new("Order", "o-1"))
}

fn ann() -> Provided {
    provided().entity(ProvidedEntity::new("User", "ann"))
}

fn call<'a>(arguments: &'a Value, user: &'a User, provided: Option<&'a Provided>) -> Call<'a> {
    Call {
        tool: "refund",
        arguments,
        user,
        agent: "a",
        run: "r",
        step: 0,
        now: 0,
        facts: Facts {
            provided,
            ..Facts::default()
        },
    }
}

fn decide(cents: i64, user: &User, provided: Option<&Provided>) -> Decision {
    let arguments = json!({"cents": cents});
    engine().current().decide(&call(&arguments, user, provided))
}

#[test]
fn groups_attributes_and_resources_decide() {
    let user = User::new("ann");
    let outcome = |cents, provided: &Provided| {
        let decision = decide(cents, &user, Some(provided));
        assert_eq!(decision.errors, []);
        decision.outcome
    };
    assert_eq!(outcome(5000, &ann()), Outcome::Allow);
    assert_eq!(
        outcome(5001, &ann()),
        Outcome::RequireApproval { quorum: 1 }
    );
    let in_group = |group: &str| {
        provided().entity(ProvidedEntity::new("User", "ann").member_of("Group", group))
    };
    assert_eq!(outcome(1, &in_group("staff")), Outcome::Allow);
    assert_eq!(outcome(1, &in_group("blocked")), Outcome::Deny);
    // A group within a group.
    let nested = in_group("inner")
        .entity(ProvidedEntity::new("Group", "inner").member_of("Group", "blocked"));
    assert_eq!(outcome(1, &nested), Outcome::Deny);
}

#[test]
fn the_provider_is_believed_about_roles_and_not_the_older_record() {
    let was_intern = User::new("ann").role("intern");
    assert_eq!(decide(1, &was_intern, Some(&ann())).outcome, Outcome::Allow);
    let is_intern =
        provided().entity(ProvidedEntity::new("User", "ann").member_of("Role", "intern"));
    let user = User::new("ann");
    assert_eq!(decide(1, &user, Some(&is_intern)).outcome, Outcome::Deny);
}

#[test]
fn approvers_are_asked_about_at_the_vote_and_again_at_release() {
    let engine = engine();
    let set = engine.current();
    let (user, approver, arguments) = (User::new("ann"), User::new("bob"), json!({"cents": 6000}));
    let with =
        |group: &str| ann().entity(ProvidedEntity::new("User", "bob").member_of("Group", group));
    let asked = Approvals::requested_at(0);
    let (staff, left) = (with("staff"), with("everyone"));
    let may = |provided| {
        let call = call(&arguments, &user, Some(provided));
        set.may_approve(&call, &approver, &asked).permitted
    };
    assert!(may(&staff));
    assert!(!may(&left));
    let approvals = asked.clone().approved_by(approver.clone());
    let release = |provided| {
        set.release(&call(&arguments, &user, Some(provided)), &approvals)
            .verdict
    };
    assert_eq!(release(&staff), Verdict::Run);
    assert_eq!(release(&left), Verdict::Wait { quorum: 1 });
    assert_eq!(release(&Provided::failed("down")), Verdict::Deny);
}

#[test]
fn who_is_not_known_any_more_does_not_count() {
    let engine = engine();
    let set = engine.current();
    let (user, arguments) = (User::new("ann"), json!({"cents": 6000}));
    let (gone, stays) = (User::new("gone"), User::new("bob"));
    let provided = ann().entity(ProvidedEntity::new("User", "bob").member_of("Group", "staff"));
    let call = call(&arguments, &user, Some(&provided));
    let asked = Approvals::requested_at(0);
    let permission = set.may_approve(&call, &gone, &asked);
    assert!(
        !permission.permitted && permission.why.contains("does not know"),
        "{permission:?}"
    );
    let release = set.release(&call, &asked.clone().approved_by(gone.clone()));
    assert_eq!(release.verdict, Verdict::Wait { quorum: 1 });
    assert!(
        release.refused[0].why.contains("does not know"),
        "{release:?}"
    );
    let both = asked.approved_by(gone).approved_by(stays);
    let release = set.release(&call, &both);
    assert_eq!(
        (release.verdict, release.counted),
        (Verdict::Run, vec!["bob".to_owned()])
    );
    for missing in [without_requester(), without_agent()] {
        let decision = decide(1, &user, Some(&missing));
        assert_eq!(decision.outcome, Outcome::Deny);
        assert!(
            decision.errors[0].message.contains("says nothing of"),
            "{decision:?}"
        );
    }
}

fn without_requester() -> Provided {
    provided()
}

fn without_agent() -> Provided {
    Provided::new()
        .entity(ProvidedEntity::new("User", "ann"))
        .entity(
            ProvidedEntity::new("Order", "o-1")
                .attribute("owner", EntityName::new("User", "ann"))
                .attribute("total_cents", 5000),
        )
        .fact("order", EntityName::new("Order", "o-1"))
}

#[test]
fn a_provider_that_fails_or_was_not_asked_denies() {
    let user = User::new("ann");
    for provided in [None, Some(Provided::failed("the directory is down"))] {
        let decision = decide(1, &user, provided.as_ref());
        assert_eq!(decision.outcome, Outcome::Deny);
        let error = decision.errors[0].to_string();
        assert!(
            error.contains("provider") || error.contains("down"),
            "{error}"
        );
    }
}

#[test]
fn what_was_not_declared_or_is_missing_denies() {
    let user = User::new("ann");
    let group = |id: &str| EntityName::new("Group", id);
    let order = |owner: FieldValue| ProvidedEntity::new("Order", "o-2").attribute("owner", owner);
    let mut no_fact = ann();
    no_fact = Provided::clone(&no_fact).fact("order", group("staff"));
    let wrong = [
        ("not a `Order`", no_fact),
        (
            "there twice",
            ann().entity(ProvidedEntity::new("Group", "staff")),
        ),
        ("does not declare", ann().fact("other", 1)),
        (
            "`Team` is not declared",
            ann().entity(ProvidedEntity::new("Team", "t")),
        ),
        (
            "does not declare",
            ann().entity(ProvidedEntity::new("Group", "g").attribute("size", 1)),
        ),
        (
            "lacks `total_cents`",
            ann().entity(order(EntityName::new("User", "ann").into())),
        ),
        (
            "not of its declared type",
            ann().entity(order("ann".into()).attribute("total_cents", 1)),
        ),
        (
            "does not provide it",
            ann().entity(order(EntityName::new("User", "zoe").into()).attribute("total_cents", 1)),
        ),
        (
            "does not provide it",
            ann().entity(ProvidedEntity::new("Group", "g").member_of("Group", "missing")),
        ),
        (
            "does not declare",
            ann().entity(
                order(EntityName::new("User", "ann").into())
                    .attribute("total_cents", 1)
                    .member_of("Group", "staff"),
            ),
        ),
        (
            "roles need not be provided",
            ann().entity(ProvidedEntity::new("Role", "x")),
        ),
        ("lacks `order`", Provided::new()),
    ];
    for (part, provided) in wrong {
        let decision = decide(1, &user, Some(&provided));
        assert_eq!(decision.outcome, Outcome::Deny, "{part}");
        assert!(
            decision.errors[0].to_string().contains(part),
            "{part}: {decision:?}"
        );
    }
}

#[test]
fn the_extension_is_part_of_the_digests_and_policies_are_validated_against_it() {
    let plain = "@id(\"p\") permit (principal, action == Action::\"refund\", resource);";
    let with = load(extension(), plain).unwrap().current();
    let without = load(Extension::default(), plain).unwrap().current();
    assert_ne!(with.digest(), without.digest());
    assert_ne!(with.slice_digest("refund"), without.slice_digest("refund"));
    load(Extension::default(), POLICIES).expect_err("nothing is declared");
    let text = POLICIES.replace("total_cents", "total_sents");
    let error = load(extension(), &text).expect_err("misspelt").to_string();
    assert!(error.contains("total_sents"), "{error}");
}

#[test]
fn a_policy_that_reaches_further_than_entities_are_asked_for_does_not_load() {
    let manager = EntityType::new().attribute("manager", Field::entity("User"));
    let forbid = |who: &str| {
        let text = format!(
            "@id(\"f\") forbid (principal, action == Action::\"refund\", resource)
             when {{ {who} == principal }};"
        );
        load(Extension::default().user(manager.clone()), &text)
    };
    forbid("principal.manager.manager").unwrap();
    let error = forbid("principal.manager.manager.manager")
        .expect_err("too far")
        .to_string();
    assert!(
        error.contains("policy `f`") && error.contains("level"),
        "{error}"
    );
    println!("{error}");
}

#[test]
fn extensions_that_cannot_be_meant_are_refused() {
    for (wrong, part) in [
        (
            Extension::default().entity("User", EntityType::new()),
            "`User` cannot be",
        ),
        (
            Extension::default().entity("a b", EntityType::new()),
            "`a b` cannot be",
        ),
        (
            Extension::default().entity("Order", EntityType::new().member_of("Grp")),
            "`Grp`, which is not declared",
        ),
        (
            Extension::default().fact("x", Field::entity("Nope")),
            "fact `x`",
        ),
        (
            Extension::default()
                .user(EntityType::new().attribute("tenant", Field::value(AttributeType::Long))),
            "declared twice",
        ),
    ] {
        let error = load(wrong, "").expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// Answers as told, or never.
struct Scripted(Option<Result<Provided, &'static str>>);

impl EntityProvider for Scripted {
    fn extension(&self) -> Extension {
        extension()
    }

    fn provide<'a>(&'a self, about: About<'a>) -> Providing<'a> {
        Box::pin(async move {
            assert_eq!(about.occasion, Occasion::Decision);
            match &self.0 {
                Some(Ok(provided)) => Ok(provided.clone()),
                Some(Err(why)) => Err((*why).into()),
                None => std::future::pending().await,
            }
        })
    }
}

fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[test]
fn a_provider_that_is_late_is_given_up_and_denies() {
    let (user, arguments) = (User::new("ann"), json!({"cents": 1}));
    let about = || About {
        occasion: Occasion::Decision,
        call: call(&arguments, &user, None),
        approvers: &[],
    };
    let never = || std::future::pending::<()>();
    let good = Scripted(Some(Ok(ann())));
    let answer = ready(ask_provider(&good, about(), never())).unwrap();
    assert_eq!(decide(1, &user, Some(&answer)).outcome, Outcome::Allow);

    let silent = Scripted(None);
    assert_eq!(
        ready(ask_provider(&silent, about(), never())),
        None,
        "still waiting"
    );
    let late = ready(ask_provider(&silent, about(), async {})).unwrap();
    let broken = Scripted(Some(Err("connection refused")));
    let broken = ready(ask_provider(&broken, about(), never())).unwrap();
    for (answer, part) in [(late, "in time"), (broken, "connection refused")] {
        let decision = decide(1, &user, Some(&answer));
        assert_eq!(decision.outcome, Outcome::Deny);
        assert!(decision.errors[0].message.contains(part), "{decision:?}");
    }
}

#[test]
fn an_extension_with_sets_of_entities_is_read() {
    let extension = Extension::default()
        .entity("Team", EntityType::new())
        .fact("teams", Field::entities("Team"));
    let text = "@id(\"p\") permit (principal, action == Action::\"refund\", resource)
         when { context.app.teams.contains(Team::\"red\") };";
    let engine = load(extension, text).unwrap_or_else(|error| panic!("{error}"));
    let user = User::new("u");
    let arguments = json!({"cents": 1});
    for (team, outcome) in [("red", Outcome::Allow), ("blue", Outcome::Deny)] {
        let teams = BTreeSet::from([EntityName::new("Team", team)]);
        let provided = Provided::new()
            .entity(ProvidedEntity::new("Team", team))
            .fact("teams", teams);
        let decision = engine
            .current()
            .decide(&call(&arguments, &user, Some(&provided)));
        assert_eq!((decision.outcome, decision.errors.len()), (outcome, 0));
    }
}
