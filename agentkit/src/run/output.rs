//! Answers that must fit a type: what the model is told, and how its answer is held to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    call::{Limits, decode_value},
    model::Message,
    tool::{SchemaValidator, answer_schema},
};

/// The form that the last answer of a run must have. It is stored with the run's options, so it
/// holds across every suspension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OutputSchema {
    schema: Value,
}

impl OutputSchema {
    /// The form of a `T`.
    pub(crate) fn of<T: JsonSchema>() -> Self {
        Self {
            schema: answer_schema::<T>(),
        }
    }

    /// What the model is told beside the agent's instructions.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "When you give your last answer, which calls no tool, write one JSON value and nothing \
             else. It must fit this JSON Schema:\n{}",
            self.schema
        )
    }

    /// The answer's JSON, if it fits.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as the model is told.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        let refused = |problems: &str| {
            format!(
                "Your answer does not fit: {problems}. Answer again with one JSON value that fits \
                 the schema, and nothing else."
            )
        };
        let value = decode_value(unfenced(text), Limits::default())
            .map_err(|error| refused(&error.to_string()))?;
        let validator = SchemaValidator::new(&self.schema).map_err(|why| refused(&why))?;
        validator.check(&value).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            refused(&problems.join("; "))
        })?;
        Ok(value)
    }
}

impl OutputSchema {
    /// The conversation in which every answer that does not fit is followed by what is wrong with
    /// it. That follows from the answers, so it is not stored.
    pub(super) fn with_corrections(&self, history: Vec<Message>) -> Vec<Message> {
        let mut corrected = Vec::with_capacity(history.len());
        for message in history {
            let correction = match &message {
                Message::Assistant(answer) if answer.tool_calls.is_empty() => {
                    self.read(&answer.text).err()
                }
                _ => None,
            };
            corrected.push(message);
            corrected.extend(correction.map(Message::user));
        }
        corrected
    }
}

/// The text inside of the fence of a Markdown code block, in which models like to put JSON.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"));
    inside.unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema counts")]
    struct Report {
        total: u64,
        lines: Vec<String>,
    }

    #[test]
    fn an_answer_that_fits_is_read_with_and_without_a_fence() {
        let form = OutputSchema::of::<Report>();
        let value = json!({"total": 1, "lines": []});
        assert_eq!(form.read(&value.to_string()), Ok(value.clone()));
        assert_eq!(form.read(&format!("```json\n{value}\n```")), Ok(value));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_refused_with_all_problems() {
        let form = OutputSchema::of::<Report>();
        let refused = form
            .read(r#"{"total": "x", "lines": [1], "more": 0}"#)
            .unwrap_err();
        for part in ["$.total", "$.lines[0]", "$.more"] {
            assert!(refused.contains(part), "{refused}");
        }
        for text in [
            "",
            "Here it is: {}",
            "{\"total\":1,\"total\":2,\"lines\":[]}",
        ] {
            assert!(form.read(text).is_err(), "{text}");
        }
    }
}
