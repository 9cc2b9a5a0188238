use agentkit::{call::CallState, run::DecideError};

use crate::desk::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_approvals_at_once_have_one_effect_and_all_learn_of_it() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    let attempts = (0..5).map(|_| {
        let (desk, decision) = (desk.clone(), approve(&call));
        tokio::spawn(async move { desk.decide(&fiona(), decision).await.unwrap() })
    });
    let mut first = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        let decided = attempt.await.unwrap();
        assert_eq!(decided.state, CallState::Approved);
        first += usize::from(!decided.repeated);
    }
    assert_eq!(first, 1);
    assert_eq!(
        finished(desk.resume_and_wait(&run).await.unwrap()),
        "Succeeded: \"paid bob\""
    );
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

/// Two instances, as two processes have them: connections, leases and caches of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_approve_and_continue_at_once_twenty_times() {
    for _ in 0..20 {
        let world = World::new();
        let desk = world.host(pays("bob", 5)).await;
        let other = world.host(echo()).await;
        let (run, call) = stopped(&desk).await;
        let both = [desk, other].map(|desk| {
            let (decision, run) = (approve(&call), run.clone());
            tokio::spawn(async move {
                let decided = desk.decide(&fiona(), decision).await.unwrap();
                let text = finished(desk.resume_and_wait(&run).await.unwrap());
                (decided.repeated, text)
            })
        });
        let mut repeated = 0;
        for one in both {
            let (again, text) = one.await.unwrap();
            assert_eq!(text, "Succeeded: \"paid bob\"");
            repeated += usize::from(again);
        }
        assert_eq!((repeated, world.ledger.effects().len()), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approve_and_decline_at_the_same_moment_one_wins_and_the_other_is_told() {
    for _ in 0..10 {
        let world = World::new();
        let desk = world.host(pays("bob", 5)).await;
        let (run, call) = stopped(&desk).await;
        let (yes, no) = tokio::join!(
            async { desk.decide(&fiona(), approve(&call)).await },
            async { desk.decide(&frank(), decline(&call, "no")).await }
        );
        let (winner, loser) = match (yes, no) {
            (Ok(_), Err(error)) => ("fiona", error),
            (Err(error), Ok(_)) => ("frank", error),
            both => panic!("{both:?}"),
        };
        let DecideError::AlreadyDecided { recorded, .. } = loser else {
            panic!("{loser:?}")
        };
        assert_eq!(recorded.approver, winner);
        finished(desk.resume_and_wait(&run).await.unwrap());
        assert_eq!(world.ledger.effects().len(), usize::from(winner == "fiona"));
    }
}

#[tokio::test]
async fn approving_again_after_the_end_returns_the_recorded_decision() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    let first = desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    let again = desk.decide(&fiona(), approve(&call)).await.unwrap();
    assert!(again.repeated);
    assert_eq!(again.decision, first.decision);
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
    let error = desk
        .decide(&fiona(), decline(&call, "no"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, DecideError::AlreadyDecided { .. }),
        "{error:?}"
    );
    assert_eq!(error.http_status(), 409);
}

#[tokio::test]
async fn a_tool_that_panics_or_fails_is_told_to_the_model() {
    let world = World::new();
    let desk = world.host(pays("broken", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(text, "Failed: the bank is closed");
}
