//! The conversation as the model is shown it: stored messages, and the results of their calls
//! taken from the calls themselves, so that nothing is stored twice.

use crate::{
    call::CallState,
    model::{Message, ResultStatus, ToolResultPart},
    store::{CallRecord, Part, StoreError, StoredMessage},
};

/// The history of a run: after each answer of the model one message with the results of its
/// calls, in the order of the calls.
pub(crate) fn history(
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
    let content = match &call.outcome {
        Some(outcome) => outcome.clone(),
        None if call.state.is_final() => String::new(),
        None => unfinished(call.state).to_owned(),
    };
    let content = match (&call.gate.amended_by, &call.arguments) {
        (Some(amender), Some(arguments)) => {
            let what = match call.state {
                CallState::Succeeded | CallState::Failed => "; what ran is",
                CallState::InDoubt => "; what may have run is",
                _ => " to",
            };
            format!("{content}\nnote: `{amender}` amended the arguments{what} {arguments}")
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
        CallState::AwaitingApproval
        | CallState::AwaitingInput
        | CallState::Approved
        | CallState::Ready
        | CallState::Executing
        | CallState::Delegated
        | CallState::Proposed => ResultStatus::Pending,
        _ => ResultStatus::Failed,
    }
}

/// What the model is told of a call of an earlier run that has no outcome yet.
const fn unfinished(state: CallState) -> &'static str {
    match state {
        CallState::AwaitingApproval => {
            "no result yet: the call waits for a person's approval; do not repeat it"
        }
        CallState::AwaitingInput => {
            "no result yet: the tool has asked a question and waits for \
                                     the answer; do not repeat the call"
        }
        CallState::InDoubt => {
            "no result: it is not known whether the call took effect; do not repeat it"
        }
        _ => "no result yet: the call is being worked on; do not repeat it",
    }
}

/// The last messages of the runs of a thread, at most so many, from a user's message on.
pub(crate) fn thread_history(parts: &[Part], most: usize) -> Result<Vec<Message>, StoreError> {
    let mut all = Vec::new();
    for part in parts {
        all.extend(history(&part.messages, &part.calls)?);
    }
    let start = all.len().saturating_sub(most);
    // Not in the midst of a turn: a result without its call would be refused by providers.
    let first = all
        .iter()
        .skip(start)
        .position(|message| matches!(message, Message::User(_)))
        .map_or(all.len(), |first| start + first);
    Ok(all.split_off(first))
}
