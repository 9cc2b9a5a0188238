use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use agentkit::model::{Usage, scripted::Reply};
use serde_json::json;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::desk::*;

/// Spans of this library, as a collector would get them.
#[derive(Clone, Default)]
struct Recorder {
    spans: Arc<Mutex<BTreeMap<u64, Recorded>>>,
    entered: Arc<Mutex<Vec<u64>>>,
    next: Arc<AtomicU64>,
}

#[derive(Clone, Debug, Default)]
struct Recorded {
    parent: Option<u64>,
    fields: BTreeMap<String, String>,
    closed: bool,
    holders: u32,
}

impl Visit for Recorded {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        self.fields
            .insert(field.name().to_owned(), text.trim_matches('"').to_owned());
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("agentkit")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::SeqCst) + 1;
        let mut recorded = Recorded {
            parent: self.entered.lock().unwrap().last().copied(),
            holders: 1,
            ..Recorded::default()
        };
        span.record(&mut recorded);
        self.spans.lock().unwrap().insert(id, recorded);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(recorded) = self.spans.lock().unwrap().get_mut(&span.into_u64()) {
            values.record(recorded);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.entered.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut entered = self.entered.lock().unwrap();
        if let Some(last) = entered.iter().rposition(|id| *id == span.into_u64()) {
            entered.remove(last);
        }
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(recorded) = self.spans.lock().unwrap().get_mut(&span.into_u64()) {
            recorded.holders += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut spans = self.spans.lock().unwrap();
        let Some(recorded) = spans.get_mut(&span.into_u64()) else {
            return false;
        };
        recorded.holders -= 1;
        recorded.closed = recorded.holders == 0;
        recorded.closed
    }
}

impl Recorder {
    fn named(&self, operation: &str) -> Vec<(u64, Recorded)> {
        let spans = self.spans.lock().unwrap();
        let found = spans
            .iter()
            .filter(|(_, span)| span.fields["gen_ai.operation.name"] == operation);
        found.map(|(id, span)| (*id, span.clone())).collect()
    }
}

#[tokio::test]
async fn one_for_each_piece_of_work_which_ends_at_the_suspension() {
    let recorder = Recorder::default();
    let _guard = tracing::subscriber::set_default(recorder.clone());
    let world = World::new();
    let mut usage = Usage::default();
    (usage.input_tokens, usage.output_tokens) = (11, 7);
    let reply = Reply::calls().call("pay", &json!({"to": "secret-name", "cents": 5}));
    let desk = world.host(calls(reply.usage(usage))).await;
    let (run, call) = stopped(&desk).await;
    let pieces = recorder.named("invoke_agent");
    let [(first, piece)] = pieces.as_slice() else {
        panic!("{pieces:?}")
    };
    assert!(piece.closed, "a run that waits for months has no open span");
    assert_eq!(piece.fields["agentkit.run.ending"], "suspended");
    assert_eq!(piece.fields["otel.name"], "invoke_agent desk");
    assert_eq!(piece.fields["gen_ai.agent.name"], "desk");

    desk.decide(&fiona(), approve(&call)).await.unwrap();
    finished(desk.resume_and_wait(&run).await.unwrap());
    let pieces = recorder.named("invoke_agent");
    let [_, (second, resumed)] = pieces.as_slice() else {
        panic!("{pieces:?}")
    };
    assert_eq!(resumed.fields["agentkit.run.ending"], "answered");
    // The two belong together: one conversation, one run, one piece after the other.
    for same in ["gen_ai.conversation.id", "agentkit.run.id"] {
        assert_eq!(resumed.fields[same], piece.fields[same]);
    }
    let epochs = [piece, resumed].map(|piece| piece.fields["agentkit.run.epoch"].clone());
    assert_eq!(epochs, ["1", "2"]);

    let chats = recorder.named("chat");
    assert_eq!(chats.len(), 2);
    assert_eq!(
        [chats[0].1.parent, chats[1].1.parent],
        [Some(*first), Some(*second)]
    );
    let asked = &chats[0].1.fields;
    assert_eq!(asked["gen_ai.usage.input_tokens"], "11");
    assert_eq!(asked["gen_ai.usage.output_tokens"], "7");
    assert_eq!(asked["gen_ai.response.finish_reasons"], "tool_calls");
    assert_eq!(asked["gen_ai.provider.name"], "scripted");

    let tools = recorder.named("execute_tool");
    let [(_, tool)] = tools.as_slice() else {
        panic!("{tools:?}")
    };
    assert_eq!(tool.parent, Some(*second));
    assert_eq!(tool.fields["gen_ai.tool.name"], "pay");
    assert_eq!(tool.fields["gen_ai.tool.call.id"], call.call.to_string());
    // Nothing of what was said or asked for is in a span.
    let all = format!("{:?}", recorder.spans.lock().unwrap());
    assert!(!all.contains("secret-name"), "{all}");
}
