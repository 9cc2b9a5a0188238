use agentkit::{
    prelude::*,
    run::{DecideError, RunError},
};

use crate::desk::*;

#[tokio::test]
async fn another_agent_and_another_tenant_find_no_such_call() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    let other: Hosted<Other> = world.builder(echo()).await.build().unwrap();
    let error = other.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(
        matches!(error, DecideError::UnknownCall { .. }),
        "{error:?}"
    );
    assert_eq!(error.http_status(), 404);
    let error = other.resume(&run).await.err().unwrap();
    assert!(matches!(error, RunError::UnknownRun { .. }), "{error:?}");
    let stranger = fiona().tenant("elsewhere");
    let error = desk.decide(&stranger, approve(&call)).await.unwrap_err();
    assert!(
        matches!(error, DecideError::UnknownCall { .. }),
        "{error:?}"
    );
    assert_eq!(the_one(&desk, &run).await, call);
}

#[tokio::test]
async fn a_call_of_another_run_is_none_of_this_run() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (_, call) = stopped(&desk).await;
    let mut decision = approve(&call);
    decision.run = agentkit::call::RunId::new();
    let error = desk.decide(&fiona(), decision).await.unwrap_err();
    assert!(
        matches!(error, DecideError::UnknownCall { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_requester_may_not_approve_where_the_policy_says_so() {
    let world = World::new();
    let policy = r#"
        @id("pays") permit (principal, action == Action::"pay with approval", resource)
            when { context.approvals.count >= 1 };
        @id("approve") permit (principal, action == Action::"approve pay", resource);
        @id("not-own") forbid (principal, action == Action::"approve pay", resource)
            when { principal == context.requester };
    "#;
    let desk = world.host_under(pays("bob", 5), policy).await;
    let (run, call) = stopped(&desk).await;
    let error = desk.decide(&alice(), approve(&call)).await.unwrap_err();
    assert!(matches!(error, DecideError::NotAllowed { .. }), "{error:?}");
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
}
