//! What a session has touched, who approved in it, and when a person spoke in it last: policies
//! read it, over restarts and across those below a run.

use std::time::Duration;

use agentkit::{
    agent::{AgentBuilder, AgentDefinition, BuildError},
    call::CallState,
    model::scripted::{Reply, ScriptedModel},
    policy::{Distinct, FactDeclaration, FactKind, FactScope, FactWindow, PolicySource},
    prelude::*,
    store::Store,
    tool::{Dynamic, Flow, RunContext, ToolError, erase},
};
use serde_json::json;

use crate::{desk::*, team::*};

/// Read the vault.
#[tool(labels = ["secret"])]
pub async fn vault(#[ctx] ledger: &Ledger) -> String {
    ledger.add("vault");
    "swordfish".to_owned()
}

/// Read a page. Only its text tells what it is.
#[tool]
pub async fn page(text: String, #[ctx] run: &RunContext) -> Result<String, ToolError> {
    if text.contains("secret") {
        run.label("secret")?;
    }
    if text.contains("fails") {
        return Err(ToolError::new("it is torn"));
    }
    Ok(text)
}

/// Label what cannot be a label.
#[tool]
pub async fn mislabel(#[ctx] run: &RunContext) -> Result<String, ToolError> {
    run.label(" ")?;
    Ok("labelled".to_owned())
}

/// Send mail.
#[tool]
pub async fn mail(to: String, #[ctx] ledger: &Ledger) -> String {
    ledger.add(format!("mail {to}"));
    "sent".to_owned()
}

/// Look at something.
#[tool]
pub async fn look(#[ctx] ledger: &Ledger) -> String {
    ledger.add("look");
    "seen".to_owned()
}

/// A clerk above a reader.
pub struct Clerk;

fn tools(definition: AgentDefinition) -> AgentDefinition {
    definition.tools([
        erase::<vault>(),
        erase::<page>(),
        erase::<mail>(),
        erase::<look>(),
        erase::<mislabel>(),
    ])
}

impl Agent for Clerk {
    type Pending = AnyCall;
    type Resume = NoAnswer;

    fn definition() -> AgentDefinition {
        let reader = AgentDefinition::new("reader", "test/scripted", "You read.");
        tools(AgentDefinition::new("clerk", "test/scripted", "You write.")).agent(tools(reader))
    }
}

const NO_MAIL_AFTER_A_SECRET: &str = r#"
    @id("all") permit (principal, action in [
        Action::"vault", Action::"page", Action::"mail", Action::"reader"
    ], resource);
    @id("no mail") forbid (principal, action == Action::"mail", resource)
        when { context.session.labels.contains("secret") };
"#;

/// The vault is read with approval, and only where nothing secret was touched by other calls.
const ONE_SECRET: &str = r#"
    @id("one") permit (principal, action == Action::"vault with approval", resource)
        when { context.approvals.count >= 1 && !context.session.labels.contains("secret") };
    @id("who") permit (principal, action == Action::"approve vault", resource);
"#;

fn builder(store: Store, world: &World, policy: &str) -> AgentBuilder<Clerk> {
    Clerk::builder()
        .store(store)
        .model(echo())
        .ctx(world.ledger.clone())
        .policies(vec![PolicySource::new("test.cedar", policy)])
        .lease(Duration::from_secs(10))
}

/// A clerk and a reader that make these calls, a step each, and say at last what came of the last.
async fn clerk(world: &World, policy: &str, steps: [Vec<Reply>; 2]) -> Hosted<Clerk> {
    let [own, readers] = steps.map(|steps| steps.into_iter().fold(echo(), ScriptedModel::reply));
    builder(world.store().await, world, policy)
        .model(own)
        .model_of("reader", readers)
        .build()
        .unwrap()
}

fn one(tool: &str, arguments: &serde_json::Value) -> Reply {
    Reply::calls().call(tool, arguments)
}

fn mails() -> Reply {
    one("mail", &json!({"to": "eve"}))
}

async fn says(clerk: &Hosted<Clerk>, input: Input) -> String {
    finished(clerk.generate(input).await.unwrap())
}

#[tokio::test]
async fn what_a_tool_declares_and_what_a_call_found() {
    let secret = json!({"text": "a secret"});
    let both = one("vault", &json!({})).call("mail", &json!({"to": "eve"}));
    for (steps, mailed) in [
        (vec![mails()], true),
        (vec![one("page", &json!({"text": "news"})), mails()], true),
        (vec![one("vault", &json!({})), mails()], false),
        // In one step the order is that of the calls.
        (vec![both], false),
        (vec![one("page", &secret), mails()], false),
        // Whatever came of the call that found it.
        (
            vec![one("page", &json!({"text": "secret, fails"})), mails()],
            false,
        ),
    ] {
        let world = World::new();
        let clerk = clerk(&world, NO_MAIL_AFTER_A_SECRET, [steps, Vec::new()]).await;
        let said = says(&clerk, Input::new(alice(), "go")).await;
        let effects = world.ledger.effects();
        assert_eq!(effects.contains(&"mail eve".to_owned()), mailed, "{said}");
        assert_eq!(said.contains("Denied"), !mailed, "{said}");
    }
}

#[tokio::test]
async fn on_a_thread_after_a_restart_and_on_no_other_thread() {
    let world = World::new();
    let on = |thread: &str| Input::new(alice(), "go").thread(Thread::new(thread));
    let first = clerk(
        &world,
        NO_MAIL_AFTER_A_SECRET,
        [vec![one("vault", &json!({}))], Vec::new()],
    );
    says(&first.await, on("tainted")).await;
    for (thread, mailed) in [("tainted", false), ("clean", true)] {
        let clerk = clerk(&world, NO_MAIL_AFTER_A_SECRET, [vec![mails()], Vec::new()]).await;
        let said = says(&clerk, on(thread)).await;
        assert_eq!(said.contains("Succeeded"), mailed, "{thread}: {said}");
    }
}

#[tokio::test]
async fn those_below_start_with_what_is_above_and_give_back_what_they_took_on() {
    let vault = || one("vault", &json!({}));
    for (own, readers) in [
        (vec![vault(), hands("reader", "mail it")], vec![mails()]),
        (vec![hands("reader", "read it"), mails()], vec![vault()]),
    ] {
        let world = World::new();
        let clerk = clerk(&world, NO_MAIL_AFTER_A_SECRET, [own, readers]).await;
        let said = says(&clerk, Input::new(alice(), "go")).await;
        assert!(said.to_lowercase().contains("denied"), "{said}");
        assert_eq!(world.ledger.effects(), ["vault"]);
    }
}

#[tokio::test]
async fn a_call_is_not_held_against_itself_but_against_the_next() {
    let world = World::new();
    let vault = || one("vault", &json!({}));
    let clerk = clerk(&world, ONE_SECRET, [vec![vault(), vault()], Vec::new()]).await;
    let run = suspended(clerk.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&clerk, &run).await;
    clerk.decide(&fiona(), approve(&call)).await.unwrap();
    let said = finished(clerk.resume_and_wait(&run).await.unwrap());
    assert!(said.contains("Denied"), "{said}");
    assert_eq!(world.ledger.effects(), ["vault"]);
    let store = clerk.runtime().store();
    let journal = store.journal(&run).await.unwrap();
    let labelled = journal.iter().filter(|entry| {
        let body = entry.body.to_string();
        body.contains("labelled") && body.contains("secret")
    });
    assert_eq!(labelled.count(), 1, "a denied call brings nothing");
}

#[tokio::test]
async fn what_cannot_be_a_label_is_refused_and_not_left_out() {
    let world = World::new();
    let clerk = clerk(
        &world,
        r#"@id("odd") permit (principal, action == Action::"mislabel", resource);"#,
        [vec![one("mislabel", &json!({}))], Vec::new()],
    )
    .await;
    let said = says(&clerk, Input::new(alice(), "go")).await;
    assert!(said.contains("the label \" \" is refused"), "{said}");
    let built = Odd::builder()
        .store(world.store().await)
        .model(echo())
        .build();
    let error = built.err().unwrap();
    assert!(
        matches!(&error, BuildError::Label { tool, .. } if tool == "odd"),
        "{error:?}"
    );
}

/// An agent with a tool of run time that has an odd label.
struct Odd;

impl Agent for Odd {
    type Pending = AnyCall;
    type Resume = NoAnswer;

    fn definition() -> AgentDefinition {
        let nothing = json!({"type": "object", "properties": {}});
        let odd = Dynamic::new("odd", "Odd.", nothing, async |_, _| {
            Ok(Flow::Done(json!("done")))
        });
        let odd = odd.unwrap().labels(["two\nlines"]);
        AgentDefinition::new("odd", "test/scripted", "Odd.").tool(std::sync::Arc::new(odd))
    }
}

#[tokio::test]
async fn how_often_a_person_spoke_and_how_many_calls_came_since() {
    // Two calls without a word from a person, and none at all in the third turn.
    const POLICY: &str = r#"
        @id("two") permit (principal, action == Action::"look", resource) when {
            context.session.calls_since_user < 2 && context.session.turn < 3 &&
            context.session.started_at <= context.system.now
        };
    "#;
    let world = World::new();
    let three = || {
        vec![
            one("look", &json!({})),
            one("look", &json!({})),
            one("look", &json!({})),
        ]
    };
    let on = || Input::new(alice(), "go").thread(Thread::new("talk"));
    for (turn, looks) in [(1, 2), (2, 4), (3, 4)] {
        let clerk = clerk(&world, POLICY, [three(), Vec::new()]).await;
        let said = says(&clerk, on()).await;
        assert_eq!(world.ledger.effects().len(), looks, "turn {turn}: {said}");
    }
    // Without a thread every run is a session of its own; those below count with it.
    let own = vec![one("look", &json!({})), hands("reader", "look")];
    let world = World::new();
    let clerk = clerk(&world, &format!("{POLICY}\n{HAND_ON}"), [own, three()]).await;
    says(&clerk, Input::new(alice(), "go")).await;
    // The call that hands on counts as well.
    assert_eq!(world.ledger.effects(), ["look"]);
}

const HAND_ON: &str = r#"@id("on") permit (principal, action == Action::"reader", resource);"#;

#[tokio::test]
async fn how_many_other_people_approved() {
    const POLICY: &str = r#"
        @id("one") permit (principal, action == Action::"vault with approval", resource)
            when { context.approvals.count >= 1 };
        @id("who") permit (principal, action == Action::"approve vault", resource);
        @id("mail") permit (principal, action == Action::"mail", resource)
            when { context.session.approvers >= 2 };
    "#;
    let approvers = FactDeclaration::new(
        "approvers",
        FactKind::DistinctOk {
            of: Distinct::Approvers {
                excluding_requester: true,
            },
        },
        "vault",
        FactWindow::Last(Duration::from_hours(1)),
        FactScope::Principal,
    );
    let world = World::new();
    let reads = |who: Principal| {
        let (world, approvers) = (&world, approvers.clone());
        async move {
            let clerk = builder(world.store().await, world, POLICY)
                .fact(approvers)
                .model(echo().reply(one("vault", &json!({}))).reply(mails()))
                .build()
                .unwrap();
            let run = suspended(clerk.generate(Input::new(alice(), "go")).await.unwrap()).run;
            let call = the_one(&clerk, &run).await;
            clerk.decide(&who, approve(&call)).await.unwrap();
            clerk.resume_and_wait(&run).await.unwrap();
            let calls = stored(&clerk, &run).await;
            calls.last().unwrap().state
        }
    };
    assert_eq!(reads(fiona()).await, CallState::Denied);
    // The same person again, and the requester, count for nothing more.
    assert_eq!(reads(fiona()).await, CallState::Denied);
    assert_eq!(reads(alice()).await, CallState::Denied);
    assert_eq!(reads(frank()).await, CallState::Succeeded);
}
