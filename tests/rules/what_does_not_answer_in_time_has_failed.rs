//! Hooks, predicates and directories are the application's: one that never answers must neither
//! hold up a run for ever nor let anything pass.

use std::{collections::BTreeSet, time::Duration};

use agentkit::{
    approval::{Directory, DirectoryError, Standing},
    gate::RequireApproval,
    model::{
        ModelRequest, Turn,
        scripted::{Reply, ScriptedModel},
    },
    prelude::*,
    run::{Before, Hook, HookError, HookedCall},
    store::CallRecord,
};
use serde_json::json;

use crate::desk::*;

const PATIENCE: Duration = Duration::from_millis(50);

fn asks_for_the_balance() -> ScriptedModel {
    calls(Reply::calls().call("balance", &json!({"of": "bob"})))
}

/// Never comes back: from the check, or from what it is told for its information.
struct Hanging {
    check: bool,
}

#[async_trait::async_trait]
impl Hook for Hanging {
    async fn before_tool_call(&self, _: HookedCall<'_>) -> Result<Before, HookError> {
        if self.check {
            std::future::pending::<()>().await;
        }
        Ok(Before::Proceed)
    }

    async fn after_tool_call(&self, _: &CallRecord) {
        std::future::pending::<()>().await;
    }

    async fn before_model_call(&self, _: &ModelRequest) {
        std::future::pending::<()>().await;
    }

    async fn after_model_call(&self, _: &Turn) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test]
async fn a_hook_blocks_the_call_where_it_is_a_check_and_is_left_behind_elsewhere() {
    for check in [true, false] {
        let world = World::new();
        let desk = world
            .builder::<Desk>(asks_for_the_balance())
            .await
            .hook(Hanging { check })
            .patience(PATIENCE)
            .build()
            .unwrap();
        let said = finished(desk.generate(Input::new(alice(), "go")).await.unwrap());
        let blocked = said.contains("a check of the application failed");
        assert_eq!(blocked, check, "{said}");
        assert_eq!(world.ledger.effects().is_empty(), check, "{said}");
    }
}

#[tokio::test]
async fn a_predicate_means_approval() {
    let world = World::new();
    let desk = world
        .builder::<Desk>(asks_for_the_balance())
        .await
        .patience(PATIENCE)
        .build()
        .unwrap();
    let never = RequireApproval::when_async(|_| std::future::pending());
    let input = Input::new(alice(), "go").require_approval(never);
    suspended(desk.generate(input).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}

/// Knows fiona, as long as it answers.
struct Slow {
    answers: bool,
}

#[async_trait::async_trait]
impl Directory for Slow {
    async fn standing(&self, person: &Principal) -> Result<Standing, DirectoryError> {
        if !self.answers && person.id != "alice" {
            std::future::pending::<()>().await;
        }
        Ok(Standing::Known {
            roles: BTreeSet::from(["finance".to_owned()]),
        })
    }
}

#[tokio::test]
async fn whom_a_directory_does_not_vouch_for_decides_nothing_and_counts_for_nothing() {
    let world = World::new();
    let host = async |answers| {
        world
            .builder::<Desk>(pays("bob", 5))
            .await
            .directory(Slow { answers })
            .patience(PATIENCE)
            .build()
            .unwrap()
    };
    let desk = host(false).await;
    let (run, call) = stopped(&desk).await;
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
    let answering = host(true).await;
    answering.decide(&fiona(), approve(&call)).await.unwrap();
    // Between the approval and the release it stops answering.
    suspended(desk.resume_and_wait(&run).await.unwrap());
    assert!(world.ledger.effects().is_empty());
}
