//! An agent below others is judged by their policies and by its own: it can be stricter, never
//! laxer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use agentkit::{
    agent::{AgentDefinition, BuildError},
    approval::{Directory, DirectoryError, Standing},
    call::CallState,
    model::scripted::Reply,
    policy::PolicySource,
    prelude::*,
    tool::erase,
};
use serde_json::json;

use crate::{desk::*, team::*};

/// A lead that pays nothing itself, above a clerk with policies of the test's choice.
struct Office<const OWN: u8>;

/// The clerk pays whatever it likes.
const ANYTHING: u8 = 1;
/// The clerk pays with approval only.
const ASKS: u8 = 2;

impl<const OWN: u8> Agent for Office<OWN> {
    type Pending = AnyCall;
    type Resume = NoAnswer;

    fn definition() -> AgentDefinition {
        let clerk = AgentDefinition::new("clerk", "test/scripted", "You pay.")
            .tools([erase::<balance>(), erase::<transfer>()]);
        let clerk = match OWN {
            ANYTHING => clerk.policy("clerk.cedar", PAYS),
            ASKS => clerk.policy("clerk.cedar", ASKING),
            ASKS_TWO => clerk.policy("clerk.cedar", ASKING.replace(">= 1", ">= 2")),
            _ => clerk,
        };
        AgentDefinition::new("lead", "test/scripted", "You lead.").agent(clerk)
    }
}

/// The clerk pays with the approval of two people.
const ASKS_TWO: u8 = 3;

/// Transfer money.
#[tool]
pub async fn transfer(to: String, cents: u64, #[ctx] ledger: &Ledger) -> String {
    ledger.add(format!("transfer {to} {cents}"));
    "done".to_owned()
}

const PAYS: &str = r#"
    @id("pays") permit (principal, action == Action::"transfer", resource);
"#;

const ASKING: &str = r#"
    @id("asks") permit (principal, action == Action::"transfer with approval", resource)
        when { context.approvals.count >= 1 };
    @id("anyone") permit (principal, action == Action::"approve transfer", resource);
"#;

/// At most 100, and whoever approves is of the finance department.
const ABOVE: &str = r#"
    @id("hands on") permit (principal, action == Action::"clerk", resource);
    @id("small") permit (principal, action == Action::"transfer", resource)
        when { context.input.cents <= 100 };
    @id("small too") permit (principal, action == Action::"transfer with approval", resource)
        when { context.input.cents <= 100 && context.approvals.count >= 1 };
    @id("finance") permit (principal in Role::"finance", action == Action::"approve transfer", resource);
"#;

async fn office<const OWN: u8>(world: &World, cents: u64, above: &str) -> Hosted<Office<OWN>> {
    let transfers = Reply::calls().call("transfer", &json!({"to": "bob", "cents": cents}));
    world
        .builder::<Office<OWN>>(calls(hands("clerk", "pay bob")))
        .await
        .model_of("clerk", calls(transfers))
        .policies(vec![PolicySource::new("lead.cedar", above)])
        .build()
        .unwrap()
}

async fn says<const OWN: u8>(world: &World, cents: u64) -> String {
    let office = office::<OWN>(world, cents, ABOVE).await;
    finished(office.generate(Input::new(alice(), "go")).await.unwrap())
}

#[tokio::test]
async fn where_the_agent_below_has_no_policy_of_its_own() {
    let world = World::new();
    let said = says::<0>(&world, 100).await;
    assert_eq!(world.ledger.effects(), ["transfer bob 100"], "{said}");
    let said = says::<0>(&world, 101).await;
    assert!(said.contains("denied"), "{said}");
    assert_eq!(world.ledger.effects().len(), 1);
}

#[tokio::test]
async fn and_where_its_own_would_allow_it() {
    let world = World::new();
    says::<ANYTHING>(&world, 100).await;
    let said = says::<ANYTHING>(&world, 101).await;
    assert!(said.contains("denied"), "{said}");
    assert_eq!(world.ledger.effects(), ["transfer bob 100"]);
}

#[tokio::test]
async fn its_own_may_ask_for_more_and_people_must_satisfy_both() {
    let world = World::new();
    let office = office::<ASKS>(&world, 100, ABOVE).await;
    let run = suspended(office.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&office, &run).await;
    // Anyone for the clerk, the finance department for the lead.
    let error = office.decide(&alice(), approve(&call)).await.unwrap_err();
    assert!(error.to_string().contains("may not decide"), "{error}");
    office.decide(&fiona(), approve(&call)).await.unwrap();
    finished(office.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["transfer bob 100"]);
    let store = office.runtime().store();
    for below in store.delegated(&run).await.unwrap() {
        store.verify_journal(&below.id).await.unwrap().unwrap();
    }
}

/// Frank is of the finance department as long as he is.
#[derive(Clone, Default)]
struct Staff(Arc<AtomicBool>);

#[async_trait::async_trait]
impl Directory for Staff {
    async fn standing(&self, person: &Principal) -> Result<Standing, DirectoryError> {
        let left = person.id == "frank" && self.0.load(Ordering::SeqCst);
        let roles = if left {
            Vec::new()
        } else {
            vec!["finance".to_owned()]
        };
        Ok(Standing::Known {
            roles: roles.into_iter().collect(),
        })
    }
}

#[tokio::test]
async fn a_vote_that_counts_for_one_of_them_only_counts_for_none() {
    for leaves in [false, true] {
        let (world, staff) = (World::new(), Staff::default());
        let transfers = Reply::calls().call("transfer", &json!({"to": "bob", "cents": 5}));
        let office = world
            .builder::<Office<ASKS_TWO>>(calls(hands("clerk", "pay bob")))
            .await
            .model_of("clerk", calls(transfers))
            .policies(vec![PolicySource::new("lead.cedar", ABOVE)])
            .directory(staff.clone())
            .build()
            .unwrap();
        let run = suspended(office.generate(Input::new(alice(), "go")).await.unwrap()).run;
        let call = the_one(&office, &run).await;
        for person in [fiona(), frank()] {
            office.decide(&person, approve(&call)).await.unwrap();
        }
        // Two count for the clerk still, and for the lead the one whom it wants.
        staff.0.store(leaves, Ordering::SeqCst);
        let outcome = office.resume_and_wait(&run).await.unwrap();
        assert_eq!(matches!(outcome, Outcome::Suspended(_)), leaves);
        assert_eq!(world.ledger.effects().is_empty(), leaves);
    }
}

#[tokio::test]
async fn a_policy_above_that_changed_stops_what_was_approved_below() {
    let world = World::new();
    let first = office::<ASKS>(&world, 100, ABOVE).await;
    let run = suspended(first.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&first, &run).await;
    first.decide(&fiona(), approve(&call)).await.unwrap();
    drop(first);
    let stricter = ABOVE.replace("<= 100", "<= 99");
    let office = office::<ASKS>(&world, 100, &stricter).await;
    office.resume_and_wait(&run).await.unwrap();
    let approved = stored(&office, &call.run).await.remove(0);
    assert_eq!(approved.state, CallState::Denied);
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn policies_above_are_checked_against_the_tools_below() {
    let world = World::new();
    let built = world
        .builder::<Office<0>>(echo())
        .await
        .policies(vec![PolicySource::new(
            "lead.cedar",
            r#"@id("x") permit (principal, action == Action::"transfer", resource)
                when { context.input.pence <= 100 };"#,
        )])
        .build();
    let error = built.err().unwrap();
    assert!(matches!(error, BuildError::Policy { .. }), "{error:?}");
    // What `#[agent]` tests covers those below as well.
    let broken = AgentDefinition::new("lead", "test/scripted", "You lead.").agent(
        AgentDefinition::new("clerk", "test/scripted", "You pay.")
            .tool(erase::<transfer>())
            .policy(
                "clerk.cedar",
                r#"@id("x") permit (principal, action == Action::"fly", resource);"#,
            ),
    );
    let error = format!("{:?}", broken.check_policies().unwrap_err());
    assert!(error.contains("fly"), "{error}");
    Office::<ASKS>::definition().check_policies().unwrap();
}
