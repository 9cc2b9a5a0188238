use agentkit::{
    approval::{PendingKind, Verdict},
    call::{Canonical, RunId},
    memory::Thread,
    model::{
        Message, ModelRequest, ResultStatus,
        scripted::{Reply, ScriptedModel},
    },
    prelude::*,
    run::StartError,
    store::{Page, RunFilter},
};
use serde_json::json;

use crate::desk::*;

fn on(thread: &str, text: &str) -> Input {
    Input::new(alice(), text).thread(Thread::new(thread))
}

/// The conversation as the model saw it last, one line a message.
fn seen(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    lines(requests.last().unwrap())
}

fn lines(request: &ModelRequest) -> Vec<String> {
    let line = |message: &Message| match message {
        Message::User(user) => format!("user: {}", user.text),
        Message::Assistant(said) if said.tool_calls.is_empty() => format!("model: {}", said.text),
        Message::Assistant(said) => format!("model: calls {}", said.tool_calls.len()),
        Message::Tool(tool) => {
            let results = tool
                .results
                .iter()
                .map(|result| format!("{:?}", result.status));
            format!("results: {}", results.collect::<Vec<_>>().join(", "))
        }
        _ => unreachable!(),
    };
    request.messages.iter().map(line).collect()
}

/// Each call has one result, right after it, as providers demand.
fn valid(model: &ScriptedModel) {
    for request in model.requests() {
        let mut open = Vec::new();
        for message in &request.messages {
            match message {
                Message::Tool(tool) => {
                    let answered: Vec<_> = tool.results.iter().map(|r| r.call.clone()).collect();
                    assert_eq!(answered, open);
                    open.clear();
                }
                Message::Assistant(said) => {
                    assert!(open.is_empty());
                    open = said
                        .tool_calls
                        .iter()
                        .map(|part| part.call.clone())
                        .collect();
                }
                _ => assert!(open.is_empty()),
            }
        }
        assert!(open.is_empty());
    }
}

#[tokio::test]
async fn a_run_sees_what_was_said_before_and_no_more_than_its_window() {
    let world = World::new();
    let model = ScriptedModel::new()
        .reply(Reply::calls().call("balance", &json!({"of": "a"})))
        .reply(Reply::text("42"))
        .reply(Reply::text("you are welcome"))
        .reply(Reply::text("bye"));
    let desk = world.host(model.clone()).await;
    desk.generate(on("t", "balance?")).await.unwrap();
    desk.generate(on("t", "thanks")).await.unwrap();
    assert_eq!(
        seen(&model),
        [
            "user: balance?",
            "model: calls 1",
            "results: Succeeded",
            "model: 42",
            "user: thanks"
        ]
    );
    // A window that would begin within a turn begins at the next message of a user.
    let input = Input::new(alice(), "bye").thread(Thread::new("t").window(4));
    desk.generate(input).await.unwrap();
    assert_eq!(
        seen(&model),
        ["user: thanks", "model: you are welcome", "user: bye"]
    );
    valid(&model);
}

#[tokio::test]
async fn a_thread_has_one_owner() {
    let world = World::new();
    let desk = world.host(echo()).await;
    desk.generate(on("t", "mine")).await.unwrap();
    let other = Input::new(frank(), "mine too").thread(Thread::new("t"));
    let error = desk.stream(other).await.err().unwrap();
    assert!(
        matches!(error, StartError::ForeignThread { .. }),
        "{error:?}"
    );
    // An owner may be a group; a tenant has threads of its own.
    let shared = |who: Principal| Input::new(who, "hi").thread(Thread::new("s").owner("team-1"));
    desk.generate(shared(alice())).await.unwrap();
    desk.generate(shared(frank())).await.unwrap();
    let elsewhere = Input::new(frank().tenant("b"), "hi").thread(Thread::new("t"));
    desk.generate(elsewhere).await.unwrap();
    let unnamed = Input::new(alice(), "hi").thread(Thread::new(""));
    assert!(matches!(
        desk.stream(unnamed).await,
        Err(StartError::ThreadId { .. })
    ));
}

#[tokio::test]
async fn a_run_that_only_reads_leaves_no_trace_in_the_thread() {
    let world = World::new();
    let model = ScriptedModel::new().answering(|_| Reply::text("ok"));
    let desk = world.host(model.clone()).await;
    desk.generate(on("t", "one")).await.unwrap();
    let reading = Input::new(alice(), "two").thread(Thread::new("t").read_only());
    desk.generate(reading).await.unwrap();
    assert_eq!(seen(&model), ["user: one", "model: ok", "user: two"]);
    desk.generate(on("t", "three")).await.unwrap();
    assert_eq!(seen(&model), ["user: one", "model: ok", "user: three"]);
}

#[tokio::test]
async fn two_instances_that_write_one_thread_lose_no_message() {
    let world = World::new();
    let model = ScriptedModel::new().answering(|_| Reply::text("ok"));
    let (one, two) = (
        world.host(model.clone()).await,
        world.host(model.clone()).await,
    );
    let mut tasks = Vec::new();
    for number in 0..20 {
        let desk = if number % 2 == 0 {
            one.clone()
        } else {
            two.clone()
        };
        tasks.push(tokio::spawn(async move {
            desk.generate(on("t", &format!("message {number}")))
                .await
                .unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    one.generate(on("t", "last")).await.unwrap();
    let seen = seen(&model);
    for number in 0..20 {
        let said = format!("user: message {number}");
        assert_eq!(
            seen.iter().filter(|line| **line == said).count(),
            1,
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn any_news_while_a_call_is_pending() {
    let world = World::new();
    let model = ScriptedModel::new()
        .reply(Reply::calls().call("pay", &json!({"to": "bob", "cents": 5})))
        .reply(Reply::text("It still waits for an approval."))
        .answering(|request| Reply::text(format!("{:?}", request.messages.len())));
    let desk = world.host(model.clone()).await;
    let run = suspended(desk.generate(on("t", "pay bob")).await.unwrap()).run;
    let text = finished(desk.generate(on("t", "any news?")).await.unwrap());
    assert_eq!(text, "It still waits for an approval.");
    assert_eq!(
        seen(&model),
        [
            "user: pay bob",
            "model: calls 1",
            "results: Pending",
            "user: any news?"
        ]
    );
    // The call is untouched and can be decided; what comes of it stands at its place.
    let call = the_one(&desk, &run).await;
    assert_eq!(call.thread.as_deref(), Some("t"));
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
    desk.generate(on("t", "and now?")).await.unwrap();
    assert_eq!(
        seen(&model)[..4],
        [
            "user: pay bob",
            "model: calls 1",
            "results: Succeeded",
            "model: 3"
        ]
    );
    valid(&model);
    let found = desk
        .suspended_runs(RunFilter::suspended().thread("t"), &Page::default())
        .await
        .unwrap();
    assert!(found.is_empty());
}

/// A weather desk as in the reference's conversation.
async fn weather(world: &World, answers: ScriptedModel) -> (Hosted<Desk>, ScriptedModel, RunId) {
    let desk = world.host(answers.clone()).await;
    let input = Input::new(alice(), "What's the weather?").thread(chat());
    let run = suspended(desk.generate(input).await.unwrap()).run;
    let question = the_one(&desk, &run).await;
    assert_eq!(question.kind, PendingKind::Question);
    (desk, answers, run)
}

fn chat() -> Thread {
    Thread::new("chat").answers_questions()
}

fn asks_city() -> ScriptedModel {
    ScriptedModel::new().reply(Reply::calls().call("ask_weather", &json!({})))
}

#[tokio::test]
async fn the_conversation_of_the_reference() {
    let world = World::new();
    let reads = Reply::calls().call("answer_1", &json!({"answer": {"city": "San Francisco"}}));
    let model = asks_city()
        .reply(reads)
        .reply(Reply::text("It is 18 degrees in San Francisco."));
    let (_, model, run) = weather(&world, model).await;
    // Another process takes the next message.
    let desk = world.host(model.clone()).await;
    let mut running = desk
        .stream(Input::new(alice(), "San Francisco").thread(chat()))
        .await
        .unwrap();
    assert_eq!(*running.run(), run, "the waiting run goes on");
    let mut result = None;
    while let Some(event) = running.next().await {
        if let RunEvent::ToolEnded { outcome, .. } = event {
            result = Some(outcome);
        }
    }
    assert_eq!(result.as_deref(), Some("\"San Francisco: 18\""));
    // The model was shown the question and the schema of its answer, and no other tool.
    let request = &model.requests()[1];
    assert!(
        request
            .instructions
            .as_ref()
            .unwrap()
            .contains("Which city?")
    );
    assert_eq!(request.tools.len(), 1);
    assert_eq!(
        request.tools[0].input_schema["properties"]["answer"]["required"],
        json!(["city"])
    );
    // What the user said is part of the conversation.
    assert_eq!(
        seen(&model),
        [
            "user: What's the weather?",
            "model: calls 1",
            "results: Succeeded",
            "user: San Francisco"
        ]
    );
    valid(&model);
    // The suspension is consumed.
    assert!(waiting(&desk, &run).await.is_empty());
    let found = desk
        .suspended_runs(RunFilter::default(), &Page::default())
        .await
        .unwrap();
    assert!(found.is_empty());
}

#[tokio::test]
async fn an_answer_that_does_not_fit_leaves_the_question_open_and_loses_no_message() {
    for reads in [
        Reply::calls().call("answer_1", &json!({"answer": {"city": 5}})),
        Reply::calls().call("answer_1", &json!({"answer": {"town": "x"}})),
        Reply::calls().call("answer_2", &json!({"answer": {"city": "x"}})),
        Reply::calls().call_raw("answer_1", "{"),
        Reply::text("It is about something else."),
    ] {
        let world = World::new();
        let model = asks_city()
            .reply(reads)
            .reply(Reply::text("Which city, please?"));
        let (desk, model, run) = weather(&world, model).await;
        let outcome = desk
            .generate(Input::new(alice(), "hm").thread(chat()))
            .await
            .unwrap();
        assert_eq!(finished(outcome), "Which city, please?");
        assert_eq!(
            seen(&model),
            [
                "user: What's the weather?",
                "model: calls 1",
                "results: Pending",
                "user: hm"
            ]
        );
        // Then the right one works, given as any answer is.
        let question = the_one(&desk, &run).await;
        let data = Canonical::of(&json!({"city": "Rome"})).unwrap();
        let answer = about(&question, Verdict::Answer { data });
        desk.decide(&alice(), answer).await.unwrap();
        model.queue(Reply::text("done"));
        desk.resume_and_wait(&run).await.unwrap();
        valid(&model);
    }
}

#[tokio::test]
async fn an_approval_is_never_given_by_chat() {
    let world = World::new();
    let model = ScriptedModel::new()
        .reply(Reply::calls().call("pay", &json!({"to": "bob", "cents": 5})))
        .reply(Reply::text("I cannot approve that."));
    let desk = world.host(model.clone()).await;
    let input = Input::new(alice(), "pay bob").thread(chat());
    let run = suspended(desk.generate(input).await.unwrap()).run;
    let outcome = desk
        .generate(Input::new(alice(), "approved!").thread(chat()))
        .await
        .unwrap();
    assert_eq!(finished(outcome), "I cannot approve that.");
    assert_eq!(
        model.requests().len(),
        2,
        "the model is not even asked to read an answer"
    );
    the_one(&desk, &run).await;
    assert!(world.ledger.effects().is_empty());
}

#[tokio::test]
async fn somebody_elses_question_is_not_answered_by_chat() {
    let world = World::new();
    let model = asks_city().reply(Reply::text("hello"));
    let desk = world.host(model.clone()).await;
    let shared = || Thread::new("s").owner("team").answers_questions();
    let input = Input::new(alice(), "weather?").thread(shared());
    let run = suspended(desk.generate(input).await.unwrap()).run;
    let input = Input::new(frank(), "Rome").thread(shared());
    assert_eq!(finished(desk.generate(input).await.unwrap()), "hello");
    the_one(&desk, &run).await;
}

#[tokio::test]
async fn the_status_of_a_call_that_waits_is_no_success() {
    assert!(!ResultStatus::Pending.is_success());
}
