use std::sync::{Arc, Mutex};

use agentkit::{call::RunId, model::scripted::Reply, prelude::*};
use opentelemetry::trace::{SpanId, Status};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::{desk::*, team::*};

/// What a process has exported.
#[derive(Clone, Debug, Default)]
struct Exported(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Exported {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

/// Runs `work` as a process of its own would, with its own exporter. Gives the spans.
async fn traced(work: impl Future<Output = ()>) -> Vec<SpanData> {
    let exported = Exported::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exported.clone())
        .build();
    let subscriber = tracing_subscriber::registry().with(agentkit::otel::layer(&provider));
    let guard = tracing::subscriber::set_default(subscriber);
    work.await;
    drop(guard);
    provider.force_flush().unwrap();
    exported.0.lock().unwrap().clone()
}

fn named<'a>(spans: &'a [SpanData], name: &str) -> Vec<&'a SpanData> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span
        .attributes
        .iter()
        .find(|found| found.key.as_str() == name);
    found.map(|found| found.value.to_string())
}

/// The spans to which a span links, by trace and id.
fn links(span: &SpanData) -> Vec<String> {
    let links = span.links.iter();
    links
        .map(|link| format!("{:?}", id(&link.span_context)))
        .collect()
}

fn id(context: &opentelemetry::trace::SpanContext) -> (String, String) {
    (
        context.trace_id().to_string(),
        context.span_id().to_string(),
    )
}

fn own(span: &SpanData) -> String {
    format!("{:?}", id(&span.span_context))
}

async fn goes_on(world: &World, run: &RunId) {
    let desk = world.host(echo()).await;
    let call = the_one(&desk, run).await;
    desk.decide(&fiona(), approve(&call)).await.unwrap();
    desk.resume_and_wait(run).await.map(drop).unwrap();
}

#[tokio::test]
async fn from_the_work_that_goes_on_to_the_work_that_was_suspended() {
    let world = World::new();
    let mut run = None;
    let pay = |cents: u32| Reply::calls().call("pay", &json!({"to": "broken", "cents": cents}));
    let first = traced(async {
        let desk = world.host(calls(pay(1))).await;
        run = Some(stopped(&desk).await.0);
    })
    .await;
    let run = run.unwrap();
    let [suspended] = named(&first, "invoke_agent desk")[..] else {
        panic!("{first:?}")
    };
    assert_eq!(
        attribute(suspended, "agentkit.run.ending").as_deref(),
        Some("suspended")
    );
    assert!(links(suspended).is_empty());
    let [chat] = named(&first, "chat scripted")[..] else {
        panic!("{first:?}")
    };
    assert_eq!(chat.parent_span_id, suspended.span_context.span_id());
    assert_eq!(
        attribute(chat, "gen_ai.operation.name").as_deref(),
        Some("chat")
    );

    // Another process, with a trace of its own, and a third after another suspension.
    let second = traced(goes_on(&world, &run)).await;
    let [resumed] = named(&second, "invoke_agent desk")[..] else {
        panic!("{second:?}")
    };
    assert_eq!(links(resumed), [own(suspended)]);
    assert_eq!(resumed.parent_span_id, SpanId::INVALID);
    assert_eq!(
        attribute(resumed, "agentkit.run.ending").as_deref(),
        Some("answered")
    );
    let [tool] = named(&second, "execute_tool pay")[..] else {
        panic!("{second:?}")
    };
    assert_eq!(tool.parent_span_id, resumed.span_context.span_id());
    assert!(matches!(tool.status, Status::Error { .. }));
}

#[tokio::test]
async fn each_to_the_last_one_and_below_as_at_the_root() {
    let world = World::new();
    let team = |pays: u32| {
        let mut team = Team::default();
        if pays == 1 {
            team.lead = calls(hands("clerk", "pay twice"));
        }
        let pay = Reply::calls().call("pay", &json!({"to": "bob", "cents": pays}));
        if pays <= 2 {
            team.clerk = calls(pay);
        }
        team
    };
    let mut run = None;
    let mut traces = vec![
        traced(async {
            let lead = team(1).host(&world).await;
            run = Some(suspended(lead.generate(Input::new(alice(), "go")).await.unwrap()).run);
        })
        .await,
    ];
    let run = run.unwrap();
    for pays in [2, 3] {
        let work = async {
            let lead = team(pays).host(&world).await;
            let call = the_one(&lead, &run).await;
            lead.decide(&fiona(), approve(&call)).await.unwrap();
            lead.resume_and_wait(&run).await.map(drop).unwrap();
        };
        traces.push(traced(work).await);
    }
    assert_eq!(world.ledger.effects(), ["pay bob 1", "pay bob 2"]);
    for agent in ["invoke_agent lead", "invoke_agent clerk"] {
        let pieces: Vec<_> = traces
            .iter()
            .flat_map(|trace| named(trace, agent))
            .collect();
        assert_eq!(pieces.len(), 3);
        assert!(links(pieces[0]).is_empty());
        assert_eq!(links(pieces[1]), [own(pieces[0])]);
        assert_eq!(links(pieces[2]), [own(pieces[1])]);
    }
}
