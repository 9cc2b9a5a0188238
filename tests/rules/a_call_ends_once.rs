use agentkit::{approval::Verdict, model::scripted::Reply, prelude::*};
use serde_json::json;

use crate::desk::*;

/// One end of each call is told, whatever the end is, and the model is given one result.
#[tokio::test]
async fn one_event_and_one_result_for_each_call() {
    for verdict in [
        Verdict::Approve,
        Verdict::Decline {
            reason: Some("no".to_owned()),
        },
        Verdict::Cancel,
    ] {
        let world = World::new();
        let reply = Reply::calls()
            .call("pay", &json!({"to": "bob", "cents": 5}))
            .call("balance", &json!({"of": "a"}));
        let model = calls(reply);
        let desk = world.host(model.clone()).await;
        let mut first = desk.stream(Input::new(alice(), "go")).await.unwrap();
        let run = first.run().clone();
        let mut ended = Vec::new();
        while let Some(event) = first.next().await {
            if let RunEvent::ToolEnded { call, .. } = event {
                ended.push(call);
            }
        }
        assert_eq!(ended.len(), 1);
        let call = the_one(&desk, &run).await;
        desk.decide(&alice(), about(&call, verdict)).await.unwrap();
        let running = desk.resume(&run).await.unwrap();
        running.ending().await.unwrap();
        let mut again = desk.attach(&run, 0).await.unwrap();
        let mut ends = Vec::new();
        while let Some(next) = again.next().await.unwrap() {
            if let RunEvent::ToolEnded { call, .. } = next.event {
                ends.push(call);
            }
        }
        assert_eq!(ends, [ended[0].clone(), call.call.clone()]);
        let results = model.requests().last().unwrap().last_results().len();
        assert_eq!(results, 2);
    }
}
