//! What of a chat's request counts. The client sends its whole history; of it only the last thing
//! that the user did is taken, never what it claims that others said or did.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    call::{CallId, Canonical, Fingerprint},
    server::Problem,
};

/// The body that the client's transport sends. It holds more, and an application's own fields
/// besides.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body {
    pub(super) id: String,
    messages: Vec<Message>,
    #[serde(default)]
    trigger: Option<String>,
    #[serde(default)]
    message_id: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<String>,
    role: String,
    #[serde(default)]
    parts: Vec<Value>,
}

/// What the user did.
pub(super) enum Did {
    /// Said something.
    Say(String),
    /// Answered what waited in a message.
    Answer(Vec<Answer>),
}

/// An answer to one call.
pub(super) struct Answer {
    pub(super) call: CallId,
    /// What the user saw.
    pub(super) fingerprint: Fingerprint,
    pub(super) said: Said,
}

pub(super) enum Said {
    Approve,
    Decline(Option<String>),
    /// To a question.
    Data(Canonical),
}

impl Body {
    pub(super) fn did(&self) -> Result<Did, Problem> {
        if self.trigger.as_deref() == Some("regenerate-message") {
            let detail = "`trigger`: an answer is not generated again, since what its tools did \
                          is done; ask anew";
            return Err(Problem::malformed(detail));
        }
        let named = self.message_id.as_ref().and_then(|id| {
            let mut messages = self.messages.iter();
            messages.find(|message| message.role == "assistant" && message.id.as_ref() == Some(id))
        });
        match named.or(self.messages.last()) {
            Some(message) if message.role == "user" => Ok(Did::Say(message.text()?)),
            Some(message) if message.role == "assistant" => {
                let answers = message.answers()?;
                if answers.is_empty() {
                    let detail = "`messages`: the assistant's message answers nothing that waited";
                    return Err(Problem::malformed(detail));
                }
                Ok(Did::Answer(answers))
            }
            _ => Err(Problem::malformed(
                "`messages`: the last one is neither the user's nor the assistant's",
            )),
        }
    }
}

impl Message {
    fn text(&self) -> Result<String, Problem> {
        let texts = self.parts.iter().filter(|part| part["type"] == "text");
        let texts: Vec<_> = texts.filter_map(|part| part["text"].as_str()).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() {
            return Err(Problem::malformed("`messages`: the last one says nothing"));
        }
        Ok(text)
    }

    fn answers(&self) -> Result<Vec<Answer>, Problem> {
        let mut answers = Vec::new();
        for part in &self.parts {
            let kind = part["type"].as_str().unwrap_or_default();
            if kind != "dynamic-tool" && !kind.starts_with("tool-") {
                continue;
            }
            match part["state"].as_str() {
                Some("approval-responded") => answers.push(approval(part)?),
                Some("output-available") => answers.extend(self.answer(part)?),
                _ => {}
            }
        }
        Ok(answers)
    }

    /// The output of a tool that asked a question: the client gives it, and it is the answer. Where
    /// nothing was asked, it is the tool's own.
    fn answer(&self, part: &Value) -> Result<Option<Answer>, Problem> {
        let asked = self.parts.iter().find(|other| {
            other["type"] == "data-pending"
                && other["id"] == part["toolCallId"]
                && other
                    .pointer("/data/kind")
                    .is_some_and(|kind| kind == "question")
        });
        let Some(asked) = asked else { return Ok(None) };
        let fingerprint = asked.pointer("/data/fingerprint").unwrap_or(&Value::Null);
        let data = part.get("output").cloned().unwrap_or_default();
        let data = Canonical::of(&data)
            .map_err(|error| Problem::malformed(format!("`output`: {error}")))?;
        Ok(Some(Answer {
            call: parsed(&part["toolCallId"], "toolCallId")?,
            fingerprint: parsed(fingerprint, "data.fingerprint")?,
            said: Said::Data(data),
        }))
    }
}

fn approval(part: &Value) -> Result<Answer, Problem> {
    let approval = &part["approval"];
    let said = match (&approval["approved"], &approval["reason"]) {
        (Value::Bool(true), _) => Said::Approve,
        (Value::Bool(false), Value::Null) => Said::Decline(None),
        (Value::Bool(false), Value::String(reason)) if reason.chars().count() <= 4000 => {
            Said::Decline(Some(reason.clone()))
        }
        (Value::Bool(_), _) => {
            let detail = "`approval.reason`: it is no text, or longer than 4000 characters";
            return Err(Problem::malformed(detail));
        }
        _ => {
            return Err(Problem::malformed(
                "`approval.approved`: it is neither `true` nor `false`",
            ));
        }
    };
    Ok(Answer {
        call: parsed(&part["toolCallId"], "toolCallId")?,
        fingerprint: parsed(&approval["id"], "approval.id")?,
        said,
    })
}

fn parsed<T: std::str::FromStr>(value: &Value, name: &str) -> Result<T, Problem> {
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Problem::malformed(format!("`{name}`: it is not as the server gave it")))
}
