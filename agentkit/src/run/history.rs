//! The conversation as the model is shown it: stored messages, and the results of their calls
//! taken from the calls themselves, so that nothing is stored twice.

use crate::{
    call::CallState,
    model::{Message, ResultStatus, ToolResultPart},
    store::{CallRecord, StoreError, StoredMessage},
};

/// The history of a run: after each answer of the model one message with the results of its
/// calls, in the order of the calls.
pub(super) fn history(
    messages: &[StoredMessage],
    calls: &[CallRecord],
) -> Result<Vec<Message>, StoreError> {
    let mut history = Vec::with_capacity(messages.len() * 2);
    for stored in messages {
        let message: Message = serde_json::from_str(&stored.body)
            .map_err(|error| StoreError::corrupt("message", &stored.sequence.to_string(), error))?;
        let answered =
            matches!(&message, Message::Assistant(answer) if !answer.tool_calls.is_empty());
        history.push(message);
        if answered {
            let results = calls
                .iter()
                .filter(|call| call.step == stored.step)
                .map(result)
                .collect();
            history.push(Message::tool(results));
        }
    }
    Ok(history)
}

fn result(call: &CallRecord) -> ToolResultPart {
    let content = call.outcome.clone().unwrap_or_default();
    let content = match (&call.gate.amended_by, &call.arguments) {
        (Some(amender), Some(arguments)) if call.state != CallState::Declined => {
            format!("{content}\nnote: `{amender}` amended the arguments; what ran is {arguments}")
        }
        _ => content,
    };
    ToolResultPart {
        call: call.id.clone(),
        provider_id: call.provider_id.clone(),
        tool: call.tool.clone(),
        status: status(call),
        content,
    }
}

const fn status(call: &CallRecord) -> ResultStatus {
    match call.state {
        CallState::Succeeded => ResultStatus::Succeeded,
        CallState::Denied if call.arguments.is_none() => ResultStatus::Invalid,
        CallState::Denied | CallState::Blocked => ResultStatus::Denied,
        CallState::Declined => ResultStatus::Declined,
        CallState::Expired => ResultStatus::Expired,
        CallState::Cancelled => ResultStatus::Cancelled,
        CallState::InDoubt => ResultStatus::InDoubt,
        _ => ResultStatus::Failed,
    }
}
