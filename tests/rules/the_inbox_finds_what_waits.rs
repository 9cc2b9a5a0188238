use agentkit::{
    approval::{PendingKind, Verdict},
    call::Canonical,
    memory::Thread,
    model::scripted::Reply,
    prelude::*,
    store::{Page, RunFilter, RunStatus},
};
use serde_json::json;

use crate::{desk::*, team::*};

async fn found(desk: &Hosted<Desk>, filter: RunFilter) -> usize {
    desk.suspended_runs(filter, &Page::default())
        .await
        .unwrap()
        .len()
}

#[tokio::test]
async fn by_thread_person_tool_kind_and_time() {
    let world = World::new();
    let model = calls(Reply::calls().call("pay", &json!({"to": "bob", "cents": 5})))
        .reply(Reply::calls().call("choose", &json!({})))
        .reply(Reply::calls().call("pay", &json!({"to": "eve", "cents": 6})));
    let desk = world.host(model).await;
    let on = |who: Principal, thread: &str| Input::new(who, "go").thread(Thread::new(thread));
    desk.generate(on(alice(), "a")).await.unwrap();
    desk.generate(on(alice(), "b")).await.unwrap();
    let middle = desk.runtime().store().now().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    desk.generate(on(frank(), "c")).await.unwrap();
    let all = RunFilter::default;
    for (filter, count) in [
        (all(), 3),
        (all().thread("a"), 1),
        (all().thread("x"), 0),
        (all().requester("alice"), 2),
        (all().tool("pay"), 2),
        (all().tool("choose").requester("frank"), 0),
        (all().kind(PendingKind::Question), 1),
        (all().kind(PendingKind::Approval).tool("choose"), 0),
        (all().since(middle), 1),
        (all().until(middle), 2),
        (
            all()
                .since(middle)
                .tool("pay")
                .requester("frank")
                .thread("c"),
            1,
        ),
    ] {
        assert_eq!(found(&desk, filter.clone()).await, count, "{filter:?}");
    }
}

/// Of the whole database, as a page for operators asks, which hosts no agent.
#[tokio::test]
async fn by_agent_and_state_and_by_what_waits_in_sub_agents() {
    let world = World::new();
    let pay = || Reply::calls().call("pay", &json!({"to": "bob", "cents": 5}));
    let mut team = Team::default();
    team.lead = calls(hands("clerk", "pay bob"));
    team.clerk = calls(pay());
    team.host(&world)
        .await
        .generate(Input::new(alice(), "go"))
        .await
        .unwrap();
    let desk = world.host(calls(pay()).reply(Reply::text("done"))).await;
    desk.generate(Input::new(alice(), "go")).await.unwrap();
    finished(desk.generate(Input::new(alice(), "go")).await.unwrap());
    let store = world.store().await;
    let all = RunFilter::default;
    for (filter, count) in [
        (all(), 3),
        (RunFilter::suspended(), 2),
        (all().status(RunStatus::Finished), 1),
        (RunFilter::suspended().agent("desk"), 1),
        (RunFilter::suspended().agent("lead"), 1),
        // A run below is found by its root.
        (RunFilter::suspended().agent("clerk"), 0),
        (all().agent("lead").tool("pay"), 1),
        (all().tool("pay").kind(PendingKind::Approval), 2),
        (all().kind(PendingKind::InDoubt), 0),
    ] {
        let found = store.runs(&filter, &Page::default()).await.unwrap();
        assert_eq!(found.len(), count, "{filter:?}");
    }
    // Each agent lists its own.
    assert_eq!(found(&desk, all()).await, 1);
}

#[tokio::test]
async fn with_all_that_an_interface_shows() {
    let world = World::new();
    let policy = r#"
        @id("two") permit (principal, action == Action::"pay with approval", resource)
            when { context.approvals.count >= 2 };
        @id("approve") permit (principal, action == Action::"approve pay", resource);
        @id("ask") permit (principal, action == Action::"choose", resource);
    "#;
    let reply = Reply::calls()
        .call("pay", &json!({"to": "bob", "cents": 5}))
        .call("choose", &json!({}));
    let desk = world.host_under(calls(reply), policy).await;
    let run = suspended(desk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let calls = waiting(&desk, &run).await;
    let amendment = Verdict::Amend {
        arguments: Canonical::of(&json!({"to": "bob", "cents": 4})).unwrap(),
        reason: None,
    };
    desk.decide(&frank(), about(&calls[0], amendment))
        .await
        .unwrap();
    let calls = waiting(&desk, &run).await;
    desk.decide(&fiona(), approve(&calls[0])).await.unwrap();
    let listed = desk
        .suspended_runs(RunFilter::default(), &Page::default())
        .await
        .unwrap();
    let [
        DeskPending::Pay(Pending::Approval(approval)),
        DeskPending::Choose(Pending::Question(question)),
    ] = listed[0].waiting.pending.as_slice()
    else {
        panic!("an approval and a question")
    };
    let call = approval.call();
    assert_eq!(
        (call.tool.as_str(), call.arguments.as_str()),
        ("pay", r#"{"cents":4,"to":"bob"}"#)
    );
    assert_eq!(call.kind, PendingKind::Approval);
    assert_eq!(call.fingerprint, calls[0].fingerprint);
    assert_eq!(call.amended_by.as_deref(), Some("frank"));
    assert_eq!(call.policies, ["two"]);
    assert_eq!(call.reasons.len(), 2);
    assert_eq!((call.quorum, approval.still_needed()), (2, 1));
    assert_eq!(call.approvals[0].approver.id, "fiona");
    assert_eq!(
        (call.requester.id.as_str(), &call.path[..]),
        ("alice", &["desk".to_owned()][..])
    );
    assert!(call.expires_at > call.requested_at);
    assert_eq!(question.call().kind, PendingKind::Question);
    assert_eq!(question.payload.free, [1]);
    let schema = question.call().answer_schema.as_ref().unwrap();
    assert_eq!(schema["required"], json!(["seat"]));
}
