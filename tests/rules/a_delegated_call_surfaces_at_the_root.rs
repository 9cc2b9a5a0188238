use agentkit::{
    approval::{PendingKind, Verdict},
    call::{CallState, Canonical, RunId},
    gate::RequireApproval,
    model::scripted::Reply,
    prelude::*,
    run::DecideError,
    store::{Page, RunFilter},
};
use serde_json::json;

use crate::{desk::*, team::*};

fn pays(cents: u64) -> Reply {
    Reply::calls().call("pay", &json!({"to": "bob", "cents": cents}))
}

/// A team in which a payment is asked for, so many agents below the lead.
fn team(depth: usize) -> Team {
    let mut team = Team::default();
    match depth {
        1 => {
            team.lead = calls(hands("clerk", "pay bob"));
            team.clerk = calls(pays(5));
        }
        2 => {
            team.lead = calls(hands("clerk", "have bob paid"));
            team.clerk = calls(hands("cashier", "pay bob"));
            team.cashier = calls(pays(5));
        }
        _ => {
            team.lead = calls(hands("clerk", "have bob paid"));
            team.clerk = calls(hands("cashier", "have bob paid"));
            team.cashier = calls(hands("teller", "pay bob"));
            team.teller = calls(pays(5));
        }
    }
    team
}

async fn started(world: &World, team: Team) -> (Hosted<Lead>, RunId) {
    let lead = team.host(world).await;
    let run = suspended(lead.generate(Input::new(alice(), "go")).await.unwrap()).run;
    (lead, run)
}

#[tokio::test]
async fn one_record_with_the_path_and_after_a_restart_too() {
    for (depth, path) in [
        (1, ["lead", "clerk"].as_slice()),
        (2, &["lead", "clerk", "cashier"]),
        (3, &["lead", "clerk", "cashier", "teller"]),
    ] {
        let world = World::new();
        let (lead, run) = started(&world, team(depth)).await;
        let call = the_one(&lead, &run).await;
        assert_eq!(
            (call.path.join("/"), call.tool.as_str()),
            (path.join("/"), "pay")
        );
        assert_eq!((&call.root, call.is_delegated()), (&run, true));
        assert_ne!(call.run, run);
        let found = lead
            .suspended_runs(RunFilter::suspended().tool("pay"), &Page::default())
            .await
            .unwrap();
        assert_eq!(found.len(), 1, "the run below is no record of its own");
        assert_eq!(found[0].waiting.pending[0].0.call, call.call);
        drop(lead);
        // Another process: no model that has not been asked is asked before the approval.
        let lead = Team::default().host(&world).await;
        let again = the_one(&lead, &run).await;
        assert_eq!(again, call);
        lead.decide(&fiona(), approve(&again)).await.unwrap();
        assert!(world.ledger.effects().is_empty());
        let text = finished(lead.resume_and_wait(&run).await.unwrap());
        assert!(text.contains("paid bob"), "{text}");
        assert_eq!(world.ledger.effects(), ["pay bob 5"]);
        for below in lead.runtime().store().delegated(&run).await.unwrap() {
            let store = lead.runtime().store();
            store.verify_journal(&below.id).await.unwrap().unwrap();
            assert!(below.status.is_final());
        }
    }
}

#[tokio::test]
async fn a_decision_about_the_root_is_the_same_as_one_about_the_run_below() {
    for (first_names_root, depth) in [(true, 1), (false, 1), (true, 3), (false, 3)] {
        let world = World::new();
        let (lead, run) = started(&world, team(depth)).await;
        let call = the_one(&lead, &run).await;
        let mut about_root = approve(&call);
        about_root.run = run.clone();
        let (first, second) = if first_names_root {
            (about_root, approve(&call))
        } else {
            (approve(&call), about_root)
        };
        assert!(!lead.decide(&fiona(), first).await.unwrap().repeated);
        assert!(lead.decide(&fiona(), second).await.unwrap().repeated);
        // Resuming the run below resumes the root.
        let running = lead.resume(&call.run).await.unwrap();
        assert_eq!(*running.run(), run);
        running.ending().await.unwrap();
        assert_eq!(world.ledger.effects(), ["pay bob 5"]);
    }
}

#[tokio::test]
async fn a_decision_that_names_another_run_is_refused() {
    let world = World::new();
    let (lead, run) = started(&world, team(2)).await;
    let (_, other) = started(&world, team(1)).await;
    let call = the_one(&lead, &run).await;
    let mut decision = approve(&call);
    decision.run = other;
    let error = lead.decide(&fiona(), decision).await.unwrap_err();
    assert!(
        matches!(error, DecideError::UnknownCall { .. }),
        "{error:?}"
    );
    // Nor through another agent, though it has a tool of that name.
    let desk = world.host(echo()).await;
    let error = desk.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(
        matches!(error, DecideError::UnknownCall { .. }),
        "{error:?}"
    );
    assert!(desk.resume(&call.run).await.is_err());
}

#[tokio::test]
async fn two_runs_below_wait_at_once_and_are_decided_in_any_order() {
    for approval_first in [true, false] {
        let world = World::new();
        let mut team = Team::default();
        team.lead = calls(
            Reply::calls()
                .call("clerk", &json!({"task": "pay bob"}))
                .call("guide", &json!({"task": "choose a seat"})),
        );
        team.clerk = calls(pays(5));
        team.guide = calls(Reply::calls().call("choose", &json!({})));
        let (lead, run) = started(&world, team).await;
        let found = waiting(&lead, &run).await;
        assert_eq!(found.len(), 2);
        let approval = found.iter().find(|call| call.tool == "pay").unwrap();
        let question = found.iter().find(|call| call.tool == "choose").unwrap();
        assert_eq!(question.kind, PendingKind::Question);
        let data = Canonical::of(&json!({"seat": 1})).unwrap();
        let answer = about(question, Verdict::Answer { data });
        let decisions = if approval_first {
            [approve(approval), answer]
        } else {
            [answer, approve(approval)]
        };
        let [first, second] = decisions;
        lead.decide(&alice_or_fiona(&first), first.clone())
            .await
            .unwrap();
        let still = suspended(lead.resume_and_wait(&run).await.unwrap());
        assert_eq!(still.pending.len(), 1);
        assert_eq!(still.pending[0].0.call, second.call);
        lead.decide(&alice_or_fiona(&second), second.clone())
            .await
            .unwrap();
        let text = finished(lead.resume_and_wait(&run).await.unwrap());
        // Results are in the order of the calls.
        let (pay, seat) = (text.find("paid bob").unwrap(), text.rfind('1').unwrap());
        assert!(pay < seat, "{text}");
        assert_eq!(world.ledger.effects(), ["pay bob 5"]);
    }
}

fn alice_or_fiona(decision: &Decision) -> Principal {
    match decision.verdict {
        Verdict::Answer { .. } => alice(),
        _ => fiona(),
    }
}

#[tokio::test]
async fn a_run_below_that_pauses_twice_repeats_nothing_and_has_two_fingerprints() {
    let world = World::new();
    let mut team = Team::default();
    team.lead = calls(hands("clerk", "pay twice"));
    team.clerk = calls(pays(1)).reply(pays(2));
    let (lead, run) = started(&world, team).await;
    let first = the_one(&lead, &run).await;
    lead.decide(&fiona(), approve(&first)).await.unwrap();
    suspended(lead.resume_and_wait(&run).await.unwrap());
    let second = the_one(&lead, &run).await;
    assert_eq!(first.run, second.run);
    assert_ne!(first.fingerprint, second.fingerprint);
    // The first decision does not count for the second call.
    let mut replayed = approve(&first);
    replayed.call = second.call.clone();
    let error = lead.decide(&fiona(), replayed).await.unwrap_err();
    assert!(
        matches!(error, DecideError::FingerprintMismatch { .. }),
        "{error:?}"
    );
    lead.decide(&fiona(), approve(&second)).await.unwrap();
    finished(lead.resume_and_wait(&run).await.unwrap());
    assert_eq!(world.ledger.effects(), ["pay bob 1", "pay bob 2"]);
}

#[tokio::test]
async fn the_gate_of_the_run_reaches_the_tools_of_sub_agents() {
    let world = World::new();
    let mut team = Team::default();
    team.lead = calls(hands("clerk", "look"));
    team.clerk = calls(
        Reply::calls()
            .call("balance", &json!({"of": "public"}))
            .call("balance", &json!({"of": "secret"})),
    );
    let lead = team.host(&world).await;
    let predicate = RequireApproval::when(|call| Ok(call.arguments["of"] == "secret"));
    let input = Input::new(alice(), "go").require_approval(predicate);
    let run = suspended(lead.generate(input).await.unwrap()).run;
    // While the process lives, the predicate judges the calls below, and after a restart it
    // means approval there too.
    assert_eq!(world.ledger.effects(), ["balance public"]);
    let call = the_one(&lead, &run).await;
    lead.decide(&fiona(), approve(&call)).await.unwrap();
    let mut team = Team::default();
    team.clerk = calls(Reply::calls().call("balance", &json!({"of": "public"})));
    let lead = team.host(&world).await;
    suspended(lead.resume_and_wait(&run).await.unwrap());
    let call = the_one(&lead, &run).await;
    assert_eq!(call.path, ["lead", "clerk"]);
    assert!(call.reasons[0].to_string().contains("not available"));

    // Asked for everything: the task itself is put before a person first.
    let world = World::new();
    let lead = team_of_one().host(&world).await;
    let input = Input::new(alice(), "go").require_approval(RequireApproval::On);
    let run = suspended(lead.generate(input).await.unwrap()).run;
    let call = the_one(&lead, &run).await;
    assert_eq!((call.tool.as_str(), call.is_delegated()), ("clerk", false));
    lead.decide(&fiona(), approve(&call)).await.unwrap();
    suspended(lead.resume_and_wait(&run).await.unwrap());
    let call = the_one(&lead, &run).await;
    assert_eq!((call.tool.as_str(), call.is_delegated()), ("balance", true));
    assert!(world.ledger.effects().is_empty());
}

fn team_of_one() -> Team {
    let mut team = Team::default();
    team.lead = calls(hands("clerk", "look"));
    team.clerk = calls(Reply::calls().call("balance", &json!({"of": "public"})));
    team
}

#[tokio::test]
async fn a_stream_shows_what_happens_below_and_what_waits_once() {
    let world = World::new();
    let lead = team(3).host(&world).await;
    let mut running = lead.stream(Input::new(alice(), "go")).await.unwrap();
    let (mut pending, mut below) = (0, 0);
    while let Some(event) = running.next().await {
        match event {
            RunEvent::Pending(call) => {
                pending += 1;
                assert_eq!(call.path.len(), 4);
            }
            RunEvent::Delegated { agent, event, .. } => {
                assert_eq!(agent, "clerk");
                if let RunEvent::Delegated { agent, .. } = *event {
                    assert_eq!(agent, "cashier");
                    below += 1;
                }
            }
            _ => {}
        }
    }
    assert_eq!(pending, 1);
    assert!(below > 2, "{below}");
}

#[tokio::test]
async fn cancelling_the_root_cancels_everything_below() {
    let world = World::new();
    let (lead, run) = started(&world, team(3)).await;
    let call = the_one(&lead, &run).await;
    lead.cancel(&alice(), &run).await.unwrap();
    assert!(waiting(&lead, &run).await.is_empty());
    let below = lead.runtime().store().delegated(&run).await.unwrap();
    assert_eq!(below.len(), 3);
    for below in below {
        assert_eq!(below.status.as_str(), "cancelled");
    }
    assert_eq!(stored(&lead, &run).await[0].state, CallState::Cancelled);
    let error = lead.decide(&fiona(), approve(&call)).await.unwrap_err();
    assert!(matches!(error, DecideError::NotPending { .. }), "{error:?}");
    assert!(world.ledger.effects().is_empty());
}
