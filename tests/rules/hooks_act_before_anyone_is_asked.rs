use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use agentkit::{
    call::CallState,
    model::{ModelRequest, Turn, scripted::Reply},
    prelude::*,
    run::{Before, Hook, HookError, HookedCall},
    store::CallRecord,
};
use serde_json::{Value, json};

use crate::desk::*;

/// What hooks saw, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

type Verdict = fn(&Value) -> Result<Before, HookError>;

/// Writes down what it sees, and says what a test wants.
struct Watch {
    name: &'static str,
    seen: Seen,
    says: Verdict,
}

#[async_trait::async_trait]
impl Hook for Watch {
    async fn before_tool_call(&self, call: HookedCall<'_>) -> Result<Before, HookError> {
        self.seen.add(format!(
            "{} before {} {}",
            self.name, call.tool, call.arguments
        ));
        (self.says)(call.arguments)
    }

    async fn after_tool_call(&self, call: &CallRecord) {
        self.seen
            .add(format!("{} after {} {}", self.name, call.tool, call.state));
    }

    async fn before_model_call(&self, request: &ModelRequest) {
        self.seen
            .add(format!("{} asks {}", self.name, request.messages.len()));
    }

    async fn after_model_call(&self, turn: &Turn) {
        self.seen
            .add(format!("{} answered {}", self.name, turn.tool_calls.len()));
    }
}

/// Panics at everything but the one question that it is asked.
struct Panicking;

#[async_trait::async_trait]
impl Hook for Panicking {
    async fn after_tool_call(&self, _: &CallRecord) {
        panic!("after a call")
    }

    async fn before_model_call(&self, _: &ModelRequest) {
        panic!("before the model")
    }

    async fn after_model_call(&self, _: &Turn) {
        panic!("after the model")
    }
}

/// Panics before it gives a future, which a hook may that is written without the macro.
struct PanickingAtOnce;

impl Hook for PanickingAtOnce {
    fn after_model_call<'a, 'b, 'c>(
        &'a self,
        _: &'b Turn,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        panic!("at once")
    }
}

async fn hosted(world: &World, says: [Verdict; 2], seen: &Seen) -> Hosted<Desk> {
    let [first, second] = says;
    let builder = world.builder::<Desk>(pays("bob", 500)).await;
    builder
        .hook(Watch {
            name: "first",
            seen: seen.clone(),
            says: first,
        })
        .hook(Watch {
            name: "second",
            seen: seen.clone(),
            says: second,
        })
        .build()
        .unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a hook")]
fn proceed(_: &Value) -> Result<Before, HookError> {
    Ok(Before::Proceed)
}

#[tokio::test]
async fn in_the_order_of_decode_hooks_gate_person_tool() {
    let (world, seen) = (World::new(), Seen::default());
    let halve: Verdict = |arguments| {
        let cents = arguments["cents"].as_u64().unwrap() / 2;
        Ok(Before::Rewrite(
            json!({"to": arguments["to"], "cents": cents}),
        ))
    };
    let desk = hosted(&world, [halve, proceed], &seen).await;
    let (run, call) = stopped(&desk).await;
    // The person sees what the hooks made of it, and that is what runs.
    assert_eq!(call.arguments.as_str(), r#"{"cents":250,"to":"bob"}"#);
    let before = seen.all();
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 250"]);
    assert_eq!(
        before,
        [
            "first asks 1",
            "second asks 1",
            "first answered 1",
            "second answered 1",
            r#"first before pay {"cents":500,"to":"bob"}"#,
            r#"second before pay {"cents":250,"to":"bob"}"#,
        ]
    );
    // After the approval no hook is asked before the call any more.
    assert_eq!(
        seen.all()[before.len()..],
        [
            "first after pay succeeded",
            "second after pay succeeded",
            "first asks 3",
            "second asks 3",
            "first answered 0",
            "second answered 0",
        ]
    );
}

#[tokio::test]
async fn a_hook_that_blocks_or_cannot_say_lets_nothing_run_and_asks_nobody() {
    let verdicts: [(Verdict, &str); 4] = [
        (
            |_| Ok(Before::Block("not on Sundays".to_owned())),
            "Denied: not on Sundays",
        ),
        (
            |_| Err("the service is down".into()),
            "Denied: blocked: a check of the application failed",
        ),
        (
            |_| panic!("a bug"),
            "Denied: blocked: a check of the application failed",
        ),
        (
            |_| Ok(Before::Rewrite(json!({"to": 5}))),
            "Invalid: a hook rewrote the call: the arguments of `pay` do not fit",
        ),
    ];
    for (says, told) in verdicts {
        let (world, seen) = (World::new(), Seen::default());
        let desk = hosted(&world, [says, proceed], &seen).await;
        let outcome = desk.generate(Input::new(alice(), "go")).await.unwrap();
        let text = finished(outcome);
        assert!(text.starts_with(told), "{text}");
        assert!(
            !seen
                .all()
                .iter()
                .any(|line| line.starts_with("second before"))
        );
        assert!(world.ledger.effects().is_empty());
    }
}

#[tokio::test]
async fn an_observer_that_panics_loses_nothing() {
    let world = World::new();
    let builder = world.builder::<Desk>(pays("bob", 5)).await;
    let desk = builder
        .hook(Panicking)
        .hook(PanickingAtOnce)
        .build()
        .unwrap();
    let (run, call) = stopped(&desk).await;
    // The call that waits is there for everyone, and was told of.
    let mut told = desk.attach(&run, 0).await.unwrap();
    let mut waits = 0;
    while let Some(next) = told.next().await.unwrap() {
        waits += usize::from(matches!(next.event, RunEvent::Pending(_)));
    }
    assert_eq!(waits, 1);
    assert_eq!(the_one(&world.host(echo()).await, &run).await, call);
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
    assert_eq!(stored(&desk, &run).await[0].state, CallState::Succeeded);
}

#[tokio::test]
async fn hooks_see_the_calls_of_sub_agents() {
    use crate::team::*;
    let (world, seen) = (World::new(), Seen::default());
    let mut team = Team::default();
    team.lead = calls(hands("clerk", "look"));
    team.clerk = calls(Reply::calls().call("balance", &json!({"of": "a"})));
    let says: Verdict = |arguments| match arguments.get("of") {
        Some(_) => Ok(Before::Block("no".to_owned())),
        None => Ok(Before::Proceed),
    };
    let watch = Watch {
        name: "watch",
        seen: seen.clone(),
        says,
    };
    let lead = team.builder(&world).await.hook(watch).build().unwrap();
    finished(lead.generate(Input::new(alice(), "go")).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}
