//! Thirteen agents, each below the one before: what waits at the end surfaces at the root, and
//! neither stack nor stream grows out of bounds on the way.

use agentkit::{agent::AgentDefinition, prelude::*, tool::erase};

use crate::{
    desk::*,
    team::{AnyCall, NoAnswer, hands},
};

const DEPTH: usize = 12;

fn name(depth: usize) -> String {
    format!("agent_{depth}")
}

struct Chain;

impl Agent for Chain {
    type Pending = AnyCall;
    type Resume = NoAnswer;

    fn definition() -> AgentDefinition {
        let agent = |depth| AgentDefinition::new(name(depth), "test/scripted", "You hand it on.");
        let last = agent(DEPTH).tool(erase::<pay>());
        (0..DEPTH)
            .rev()
            .fold(last, |below, depth| agent(depth).agent(below))
    }
}

/// A process whose agents begin, or go on with what was begun.
async fn host(world: &World, begins: bool) -> Hosted<Chain> {
    let model = |depth| match depth {
        _ if !begins => echo(),
        DEPTH => pays("bob", 5),
        _ => calls(hands(&name(depth + 1), "pay bob")),
    };
    let builder = world.builder::<Chain>(model(0)).await;
    (1..=DEPTH)
        .fold(builder, |builder, depth| {
            builder.model_of(name(depth), model(depth))
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn and_ends_where_it_began() {
    let world = World::new();
    let chain = host(&world, true).await;
    let run = suspended(chain.generate(Input::new(alice(), "go")).await.unwrap()).run;
    drop(chain);
    let chain = host(&world, false).await;
    let call = the_one(&chain, &run).await;
    assert_eq!((call.path.len(), &call.root), (DEPTH + 1, &run));
    chain.decide(&fiona(), approve(&call)).await.unwrap();
    let text = finished(chain.resume_and_wait(&run).await.unwrap());
    assert!(text.contains("paid bob"), "{text}");
    assert_eq!(world.ledger.effects(), ["pay bob 5"]);
}

#[tokio::test]
async fn and_is_cancelled_as_a_whole() {
    let world = World::new();
    let chain = host(&world, true).await;
    let run = suspended(chain.generate(Input::new(alice(), "go")).await.unwrap()).run;
    chain.cancel(&alice(), &run).await.unwrap();
    let below = chain.runtime().store().delegated(&run).await.unwrap();
    assert_eq!(below.len(), DEPTH);
    assert!(below.iter().all(|run| run.status.as_str() == "cancelled"));
    assert!(world.ledger.effects().is_empty());
}
