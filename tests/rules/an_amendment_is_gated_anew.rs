use agentkit::run::DecideError;
use serde_json::json;

use crate::desk::*;

const POLICY: &str = r#"
    @id("pays") permit (principal, action == Action::"pay with approval", resource)
        when { context.input.cents <= 100 && context.approvals.count >= 1 };
    @id("approve") permit (principal in Role::"finance", action == Action::"approve pay", resource);
"#;

#[tokio::test]
async fn it_has_a_new_fingerprint_and_the_model_is_told_what_ran() {
    let world = World::new();
    let desk = world.host_under(pays("bob", 50), POLICY).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), amend(&call, &json!({"to": "bob", "cents": 20})))
        .await
        .unwrap();
    let amended = the_one(&desk, &run).await;
    assert_ne!(amended.fingerprint, call.fingerprint);
    assert_eq!(amended.arguments.as_str(), r#"{"cents":20,"to":"bob"}"#);
    desk.decide(&frank(), approve(&amended)).await.unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(text.contains("`fiona` amended the arguments"), "{text}");
    assert!(text.contains(r#""cents":20"#), "{text}");
    assert_eq!(world.ledger.effects(), ["pay bob 20"]);
}

#[tokio::test]
async fn who_amended_it_is_still_told_after_it_was_asked_again() {
    let world = World::new();
    let desk = world.host_under(pays("bob", 50), POLICY).await;
    let (run, call) = stopped(&desk).await;
    let amendment = amend(&call, &json!({"to": "bob", "cents": 20}));
    desk.decide(&fiona(), amendment).await.unwrap();
    let amended = the_one(&desk, &run).await;
    desk.decide(&frank(), approve(&amended)).await.unwrap();
    // The policy changes before the call runs.
    let changed = POLICY.replace("<= 100", "<= 99");
    let desk = world.host_under(echo(), &changed).await;
    suspended(desk.resume_and_wait(&run).await.unwrap());
    let again = the_one(&desk, &run).await;
    desk.decide(&frank(), approve(&again)).await.unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(text.contains("`fiona` amended the arguments"), "{text}");
    assert_eq!(world.ledger.effects(), ["pay bob 20"]);
}

#[tokio::test]
async fn what_does_not_fit_or_is_forbidden_is_refused_and_the_call_waits_on() {
    let world = World::new();
    let desk = world.host_under(pays("bob", 50), POLICY).await;
    let (run, call) = stopped(&desk).await;
    let error = desk
        .decide(&fiona(), amend(&call, &json!({"to": "bob"})))
        .await
        .unwrap_err();
    assert!(matches!(error, DecideError::DoesNotFit(_)), "{error:?}");
    let wrong = amend(&call, &json!({"to": "bob", "cents": 500}));
    let error = desk.decide(&fiona(), wrong).await.unwrap_err();
    assert!(matches!(error, DecideError::NotAllowed { .. }), "{error:?}");
    let wrong = amend(&call, &json!({"to": "bob", "cents": 1}));
    let error = desk.decide(&alice(), wrong).await.unwrap_err();
    assert!(matches!(error, DecideError::NotAllowed { .. }), "{error:?}");
    assert_eq!(the_one(&desk, &run).await, call);
}
