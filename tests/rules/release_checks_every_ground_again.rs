use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agentkit::{
    approval::{Directory, DirectoryError, Standing},
    call::CallState,
    policy::PolicySource,
    prelude::*,
    run::DecideError,
};

use crate::desk::*;

const POLICY: &str = r#"
    @id("pays") permit (principal in Role::"clerk", action == Action::"pay with approval", resource)
        when { context.approvals.count >= 1 };
    @id("approve") permit (principal in Role::"finance", action == Action::"approve pay", resource);
"#;

#[tokio::test]
async fn a_policy_that_forbids_it_meanwhile() {
    let world = World::new();
    let desk = world.host_under(pays("bob", 5), POLICY).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let forbids =
        format!("{POLICY} @id(\"stop\") forbid (principal, action in Action::\"pay\", resource);");
    let desk = world.host_under(echo(), &forbids).await;
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(text.starts_with("Denied: denied: policy `stop`"), "{text}");
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn a_policy_for_the_tool_that_changed_asks_again_and_old_votes_do_not_carry_over() {
    let world = World::new();
    let desk = world.host_under(pays("bob", 5), POLICY).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let changed = POLICY.replace(">= 1", ">= 1 && context.input.cents < 100");
    let desk = world.host_under(echo(), &changed).await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    let again = the_one(&desk, &run).await;
    assert_ne!(again.fingerprint, call.fingerprint);
    assert!(again.approvals.is_empty());
    assert!(
        again.reasons[0]
            .to_string()
            .contains("the policy for this tool changed")
    );
    // The old decision is refused, the new one counts.
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(
        matches!(error, DecideError::FingerprintMismatch { .. }),
        "{error:?}"
    );
    desk.decide(&fiona(), approve(&again)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn a_policy_that_changed_for_another_tool_does_not_matter() {
    let world = World::new();
    let desk = world.host_under(pays("bob", 5), POLICY).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let changed =
        format!("{POLICY} @id(\"b\") permit (principal, action == Action::\"balance\", resource);");
    let desk = world.host_under(echo(), &changed).await;
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

/// A directory whose answer a test changes.
#[derive(Clone)]
struct Staff(Arc<Mutex<Standing>>);

#[async_trait::async_trait]
impl Directory for Staff {
    async fn standing(&self, person: &Principal) -> Result<Standing, DirectoryError> {
        if person.id == "alice" {
            return Ok(Standing::AsClaimed);
        }
        Ok(self.0.lock().unwrap().clone())
    }
}

#[tokio::test]
async fn an_approver_who_lost_the_role_does_not_count() {
    let finance = || Standing::Known {
        roles: ["finance".to_owned()].into(),
    };
    let clerk = || Standing::Known {
        roles: ["clerk".to_owned()].into(),
    };
    for lost in [clerk(), Standing::Unknown] {
        let world = World::new();
        let staff = Staff(Arc::new(Mutex::new(finance())));
        let policies = vec![PolicySource::new("test.cedar", POLICY)];
        let builder = world.builder::<Desk>(pays("bob", 5)).await;
        let desk = builder
            .policies(policies)
            .directory(staff.clone())
            .build()
            .unwrap();
        let (run, call) = stopped(&desk).await;
        desk.decide(&fiona(), approve(&call)).await.unwrap();
        *staff.0.lock().unwrap() = lost;
        suspended(desk.resume_and_wait(&run).await.unwrap());
        assert!(world.ledger.effects().is_empty());
        let again = the_one(&desk, &run).await;
        // Nor may the person approve anew.
        let error = desk.decide(&fiona(), approve(&again)).await.unwrap_err();
        assert!(matches!(error, DecideError::NotAllowed { .. }), "{error:?}");
        assert_eq!(error.http_status(), 403);
    }
}

#[tokio::test]
async fn claims_count_up_to_the_configured_age() {
    let world = World::new();
    let policies = vec![PolicySource::new("test.cedar", POLICY)];
    let builder = world
        .builder::<Desk>(pays("bob", 5))
        .await
        .policies(policies);
    let desk = builder
        .claims_age(Duration::from_millis(1))
        .build()
        .unwrap();
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    world
        .tamper("UPDATE agentkit_decisions SET decided_at = decided_at - 10000")
        .await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn two_people_where_the_policy_says_two() {
    let world = World::new();
    let two = POLICY.replace(">= 1", ">= 2");
    let desk = world.host_under(pays("bob", 5), &two).await;
    let (run, call) = stopped(&desk).await;
    assert_eq!(call.quorum, 2);
    assert_eq!(
        desk.decide(&fiona(), approve(&call))
            .await
            .unwrap()
            .still_needed,
        1
    );
    // The same person twice is one person.
    let again = desk.decide(&fiona(), approve(&call)).await.unwrap();
    assert_eq!((again.repeated, again.still_needed), (true, 1));
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(the_one(&desk, &run).await.approvals.len(), 1);
    assert_eq!(
        desk.decide(&frank(), approve(&call)).await.unwrap().state,
        CallState::Approved
    );
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn what_expired_cannot_be_approved_and_does_not_run() {
    // Before the decision.
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    world
        .tamper("UPDATE agentkit_calls SET expires_at = requested_at")
        .await;
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(matches!(error, DecideError::Expired { .. }), "{error:?}");
    assert_eq!(error.http_status(), 410);
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(
        text.starts_with("Expired: expired: nobody decided until"),
        "{text}"
    );
    // Between the decision and the execution.
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    world
        .tamper("UPDATE agentkit_calls SET expires_at = requested_at")
        .await;
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}
