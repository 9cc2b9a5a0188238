//! A chat's messages out of what is stored of its thread.

use serde_json::{Value, json};

use super::chunks::output;
use crate::{
    call::{CallState, Principal},
    model::Message,
    server::{Problem, state::Server},
    store::{CallRecord, Part, StoreError},
};

/// How many runs of a chat are given at most: the last ones.
pub(super) const LONGEST: u64 = 200;

/// The last runs of a chat of the caller; none where there is no such chat yet.
pub(super) async fn runs(
    server: &Server,
    who: &Principal,
    chat: &str,
    most: u64,
) -> Result<Vec<Part>, Problem> {
    let tenant = who.tenant.as_deref();
    match server.store.thread_position(tenant, chat, &who.id).await {
        Ok(Some(_)) => {
            let runs = server.store.thread(tenant, chat, i64::MAX, most).await?;
            Ok(runs)
        }
        Ok(None) => Ok(Vec::new()),
        Err(StoreError::ForeignThread { .. }) => Err(Problem::unknown("chat")),
        Err(error) => Err(error.into()),
    }
}

/// The messages of one run: the user's, and one of the assistant.
pub(super) fn messages(part: &Part) -> Vec<Value> {
    let run = &part.run.id;
    let (mut said, mut parts) = (Vec::new(), Vec::new());
    for stored in &part.messages {
        // A message of a form that this version does not know is not shown.
        match serde_json::from_str(&stored.body) {
            Ok(Message::User(message)) => said.push(json!({
                "type": "text", "text": message.text, "state": "done",
            })),
            Ok(Message::Assistant(message)) => {
                parts.push(json!({ "type": "step-start" }));
                if !message.text.is_empty() {
                    parts.push(json!({ "type": "text", "text": message.text, "state": "done" }));
                }
                let calls = part.calls.iter().filter(|call| call.step == stored.step);
                parts.extend(calls.map(tool_part));
            }
            _ => {}
        }
    }
    let mut messages = vec![json!({ "id": format!("{run}-asked"), "role": "user", "parts": said })];
    if !parts.is_empty() {
        messages.push(json!({ "id": run, "role": "assistant", "parts": parts }));
    }
    messages
}

fn tool_part(call: &CallRecord) -> Value {
    let input = call
        .arguments
        .as_ref()
        .and_then(|text| text.to_value().ok());
    let mut part = json!({
        "type": "dynamic-tool", "toolName": call.tool, "toolCallId": call.id, "input": input,
    });
    let outcome = call.outcome.clone().unwrap_or_default();
    let id = call.fingerprint.map(|fingerprint| fingerprint.to_string());
    let more = match call.state {
        CallState::Succeeded => json!({
            "state": "output-available", "output": output(&outcome),
        }),
        CallState::Declined => json!({
            "state": "output-denied", "approval": { "id": id, "approved": false },
        }),
        CallState::AwaitingApproval => json!({
            "state": "approval-requested", "approval": { "id": id },
        }),
        state if state.is_final() => json!({ "state": "output-error", "errorText": outcome }),
        _ => json!({ "state": "input-available" }),
    };
    if let (Value::Object(part), Value::Object(more)) = (&mut part, more) {
        part.extend(more);
    }
    part
}
