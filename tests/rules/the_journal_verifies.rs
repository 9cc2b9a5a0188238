use agentkit::prelude::*;

use crate::desk::*;

async fn events<A: Agent>(desk: &Hosted<A>, run: &agentkit::call::RunId) -> Vec<String> {
    let entries = desk.runtime().store().journal(run).await.unwrap();
    let name = |entry: &agentkit::journal::Entry| {
        entry.body.to_value().unwrap()["event"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    entries.iter().map(name).collect()
}

#[tokio::test]
async fn it_tells_the_whole_story_of_a_call() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    let story = [
        "run_started",
        "model_answered",
        "gate_decided",
        "approval_requested",
        "run_suspended",
        "decided",
        "released",
        "call_ended",
        "model_answered",
        "run_ended",
    ];
    assert_eq!(events(&desk, &run).await, story);
    desk.runtime()
        .store()
        .verify_journal(&run)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn any_change_of_it_is_found() {
    for change in [
        "UPDATE agentkit_journal SET body = replace(body, 'fiona', 'frank') WHERE event = 'decided'",
        "DELETE FROM agentkit_journal WHERE event = 'decided'",
        "UPDATE agentkit_journal SET created_at = created_at + 1 WHERE sequence = 3",
    ] {
        let world = World::new();
        let desk = world.host(pays("bob", 5)).await;
        let (run, call) = stopped(&desk).await;
        desk.decide(&fiona(), approve(&call)).await.unwrap();
        world.tamper(change).await;
        let verified = desk.runtime().store().verify_journal(&run).await.unwrap();
        assert!(verified.is_err(), "{change}");
    }
}

#[tokio::test]
async fn it_holds_no_argument_and_no_reason_in_plain_text() {
    let world = World::new();
    let desk = world.host(pays("a-secret-payee", 5)).await;
    let (run, call) = stopped(&desk).await;
    desk.decide(&fiona(), decline(&call, "a secret reason"))
        .await
        .unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    for entry in desk.runtime().store().journal(&run).await.unwrap() {
        assert!(!entry.body.as_str().contains("secret"), "{}", entry.body);
    }
}
