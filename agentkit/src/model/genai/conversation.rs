//! The conversation as every provider wants it: each turn's calls, and right after them the
//! results of all of them, in the order of the calls, under ids that are unique.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    call::CallId,
    model::{AssistantMessage, Message, ModelError, ModelErrorKind, ToolCallPart, ToolResultPart},
};

/// A conversation in which every call has its result.
pub(super) struct Conversation<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    ids: BTreeMap<&'a str, Vec<&'a CallId>>,
}

pub(super) enum Entry<'a> {
    User(&'a str),
    Assistant(&'a AssistantMessage),
    /// In the order of the calls.
    Results(Vec<&'a ToolResultPart>),
}

impl<'a> Conversation<'a> {
    /// Pairs calls with results.
    ///
    /// # Errors
    ///
    /// When a call has no result or a result has no call. A provider would refuse that request,
    /// and say less about why.
    pub(super) fn of(messages: &'a [Message]) -> Result<Self, ModelError> {
        let mut entries = Vec::new();
        let mut ids: BTreeMap<&str, Vec<&CallId>> = BTreeMap::new();
        let mut open: &[ToolCallPart] = &[];
        for message in messages {
            match message {
                Message::Tool(tool) => {
                    entries.push(Entry::Results(in_call_order(open, &tool.results)?));
                    open = &[];
                }
                Message::User(_) | Message::Assistant(_) => {
                    if let Some(call) = open.first() {
                        return Err(unanswered(call));
                    }
                    match message {
                        Message::Assistant(assistant) => {
                            open = &assistant.tool_calls;
                            for call in open {
                                ids.entry(&call.provider_id).or_default().push(&call.call);
                            }
                            entries.push(Entry::Assistant(assistant));
                        }
                        Message::User(user) => entries.push(Entry::User(&user.text)),
                        Message::Tool(_) => {}
                    }
                }
            }
        }
        match open.first() {
            Some(call) => Err(unanswered(call)),
            None => Ok(Self { entries, ids }),
        }
    }

    /// The id by which the provider pairs call and result: its own, unless it used it twice or
    /// `fits` says that it would not take it back.
    pub(super) fn id<'b>(
        &self,
        call: &'b CallId,
        provider_id: &'b str,
        fits: fn(&str) -> bool,
    ) -> &'b str {
        let unique = self
            .ids
            .get(provider_id)
            .is_some_and(|calls| calls.len() == 1);
        if unique && fits(provider_id) {
            provider_id
        } else {
            call.as_str()
        }
    }
}

fn in_call_order<'a>(
    calls: &[ToolCallPart],
    results: &'a [ToolResultPart],
) -> Result<Vec<&'a ToolResultPart>, ModelError> {
    let foreign = |result: &&ToolResultPart| !calls.iter().any(|call| call.call == result.call);
    if let Some(result) = results.iter().find(foreign) {
        return Err(invalid(format!(
            "the result of call `{}` of `{}` does not follow its call: put the results of a turn \
             into one message right after it",
            result.call, result.tool
        )));
    }
    if results.len() > calls.len() {
        return Err(invalid(
            "a call has more than one result: give each call of a turn one result".to_owned(),
        ));
    }
    calls
        .iter()
        .map(|call| {
            results
                .iter()
                .find(|result| result.call == call.call)
                .ok_or_else(|| unanswered(call))
        })
        .collect()
}

fn unanswered(call: &ToolCallPart) -> ModelError {
    invalid(format!(
        "call `{}` of `{}` has no result: give every call of a turn one before the model goes on",
        call.call, call.tool
    ))
}

fn invalid(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::InvalidRequest, message)
}

/// The arguments of an earlier call as an object, whatever the model wrote then.
///
/// Providers answer a history with broken arguments by refusing the request, and every later
/// one with it, so a text that is no object is shown to the model inside of one. This is only
/// ever what the model sees of its past; what runs is decided by the gate on the raw text.
pub(super) fn past_arguments(raw: &str) -> Map<String, Value> {
    serde_json::from_str(raw).unwrap_or_else(|_| {
        let mut wrapped = Map::new();
        wrapped.insert("unreadable_arguments".to_owned(), Value::from(raw));
        wrapped
    })
}
