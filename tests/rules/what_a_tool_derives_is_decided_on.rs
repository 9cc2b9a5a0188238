//! Facts that a tool derives from its arguments, as policies read them: `context.derived`.

use agentkit::{model::scripted::Reply, policy::PolicySource, prelude::*};
use serde_json::json;

use crate::desk::*;

/// Order things, each for so many cents.
#[tool(facts(
    total = |args| args.cents.iter().sum::<u64>(),
    dearest = |args| *args.cents.iter().max().expect("an order of something"),
))]
pub async fn order(cents: Vec<u64>, #[ctx] ledger: &Ledger) -> String {
    ledger.add(format!("order {cents:?}"));
    "ordered".to_owned()
}

/// A shop.
#[agent(name = "shop", model = "test/scripted", instructions = "You order.", tools = [order])]
pub struct Shop;

const POLICY: &str = r#"
    @id("small") permit (principal, action == Action::"order", resource)
        when { context.derived.total <= 100 && context.derived.dearest <= 60 };
    @id("large") permit (principal, action == Action::"order with approval", resource)
        when { context.derived.total <= 1000 && context.approvals.count >= 1 };
    @id("finance") permit (principal in Role::"finance", action == Action::"approve order", resource)
        when { context.derived.total <= 1000 };
"#;

async fn shop(world: &World, cents: &[u64]) -> Hosted<Shop> {
    let orders = Reply::calls().call("order", &json!({ "cents": cents }));
    world
        .builder::<Shop>(calls(orders))
        .await
        .policies(vec![PolicySource::new("shop.cedar", POLICY)])
        .build()
        .unwrap()
}

#[tokio::test]
async fn when_a_call_is_gated_approved_and_released() {
    let world = World::new();
    for (cents, done) in [
        ([50, 50].as_slice(), true),
        (&[600, 600], false),
        // Nothing can be derived of it, and it is denied.
        (&[], false),
        // More than policies can count to.
        (&[u64::MAX], false),
    ] {
        let shop = shop(&world, cents).await;
        let said = finished(shop.generate(Input::new(alice(), "go")).await.unwrap());
        assert_eq!(said.contains("Succeeded"), done, "{cents:?}: {said}");
        assert_eq!(said.contains("denied"), !done, "{cents:?}: {said}");
    }
    assert_eq!(world.ledger.effects(), ["order [50, 50]"]);
    let shop = shop(&world, &[70, 5]).await;
    let run = suspended(shop.generate(Input::new(alice(), "go")).await.unwrap()).run;
    let call = the_one(&shop, &run).await;
    shop.decide(&fiona(), approve(&call)).await.unwrap();
    finished(shop.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects().len(), 2);
}
