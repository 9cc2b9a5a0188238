use agentkit::{gate::RequireApproval, model::scripted::Reply, prelude::*};
use serde_json::json;

use crate::{database::TestDatabase, desk::*};

fn looks() -> Reply {
    Reply::calls().call("whoami", &json!({}))
}

fn input() -> Input {
    let asks = RequireApproval::when_async(|call| async move { Ok(call.context["ask"] == true) });
    Input::new(alice(), "go")
        .context("token", "secret-4711")
        .context("ask", false)
        .stored_context("locale", "de-CH")
        .require_approval(asks)
}

#[tokio::test]
async fn unless_it_is_marked_and_then_it_holds_across_suspensions() {
    let world = World::on(TestDatabase::file());
    let pay = Reply::calls().call("pay", &json!({"to": "bob", "cents": 5}));
    let desk = world.host(calls(looks()).reply(pay)).await;
    let run = suspended(desk.generate(input()).await.unwrap()).run;
    // The process that started the run has all of it, its predicate too.
    assert_eq!(
        world.ledger.effects(),
        [
            r#"whoami {"ask": Bool(false), "locale": String("de-CH"), "token": String("secret-4711")}"#
        ]
    );
    for suffix in ["", "-wal"] {
        let mut path = world.database.path().clone().into_os_string();
        path.push(suffix);
        let bytes = std::fs::read(path).unwrap();
        let found = |text: &str| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        assert!(!found("secret-4711"));
    }
    // Another one has what was marked, and no predicate: it means approval.
    let desk = world.host(calls(looks())).await;
    let call = the_one(&desk, &run).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    suspended(desk.resume_and_wait(&run).await.unwrap());
    let call = the_one(&desk, &run).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(
        world.ledger.effects()[2],
        r#"whoami {"locale": String("de-CH")}"#
    );
}

#[tokio::test]
async fn nor_is_it_shown_where_the_run_is_printed() {
    let input = input();
    let shown = format!("{input:?}");
    assert!(
        !shown.contains("4711") && shown.contains("token"),
        "{shown}"
    );
}
