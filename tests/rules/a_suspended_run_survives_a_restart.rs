use agentkit::{
    prelude::*,
    store::{Page, RunFilter},
};

use crate::desk::*;

#[tokio::test]
async fn another_instance_finds_it_decides_and_continues() {
    let world = World::new();
    let (run, before) = {
        let desk = world.host(pays("bob", 5)).await;
        stopped(&desk).await
    };
    let desk = world.host(echo()).await;
    let found = desk
        .suspended_runs(RunFilter::default(), &Page::default())
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].record.id, run);
    let Some(DeskPending::Pay(Pending::Approval(approval))) = found
        .into_iter()
        .next()
        .unwrap()
        .waiting
        .pending
        .into_iter()
        .next()
    else {
        panic!("not an approval of `pay`")
    };
    assert_eq!((approval.args.to.as_str(), approval.args.cents), ("bob", 5));
    assert_eq!(approval.call(), &before);
    desk.decide(&fiona(), approval.approve()).await.unwrap();
    assert_eq!(
        finished(desk.resume_and_wait(&run).await.unwrap()),
        "Succeeded: \"paid bob\""
    );
    assert!(
        desk.suspended_runs(RunFilter::default(), &Page::default())
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_decision_alone_changes_nothing_until_someone_continues() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, call) = stopped(&desk).await;
    let decider = world.host(echo()).await;
    decider.decide(&fiona(), approve(&call)).await.unwrap();
    assert!(world.ledger.effects().is_empty());
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn pages_of_runs_follow_one_another() {
    let world = World::new();
    let model = (0..5).fold(echo(), |model, cents| {
        let pay = serde_json::json!({"to": "bob", "cents": cents});
        model.reply(agentkit::model::scripted::Reply::calls().call("pay", &pay))
    });
    let desk = world.host(model).await;
    let mut started = Vec::new();
    for _ in 0..5 {
        started.push(stopped(&desk).await.0);
    }
    let (mut page, mut seen) = (
        Page {
            after: None,
            size: 2,
        },
        Vec::new(),
    );
    loop {
        let found = desk
            .suspended_runs(RunFilter::default(), &page)
            .await
            .unwrap();
        let Some(last) = found.last() else { break };
        page.after = Some(last.record.id.clone());
        seen.extend(found.into_iter().map(|run| run.record.id));
    }
    assert_eq!(seen, started);
    let nobody = RunFilter::default().requester("bob");
    assert!(
        desk.suspended_runs(nobody, &Page::default())
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_tool_that_changed_or_vanished_voids_the_call_and_not_the_run() {
    let world = World::new();
    let desk = world.host(pays("bob", 5)).await;
    let (run, _) = stopped(&desk).await;
    world
        .tamper(&format!(
            "UPDATE agentkit_calls SET input_schema = {}",
            world.database.zeros()
        ))
        .await;
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(text.contains("another schema"), "{text}");
    let desk = world.host(pays("bob", 5)).await;
    let (run, _) = stopped(&desk).await;
    world
        .tamper(&format!(
            "UPDATE agentkit_calls SET tool = 'gone' WHERE run_id = '{run}'"
        ))
        .await;
    let text = finished(desk.resume_and_wait(&run).await.unwrap());
    assert!(text.contains("no tool `gone` any more"), "{text}");
    assert!(world.ledger.effects().is_empty());
}
