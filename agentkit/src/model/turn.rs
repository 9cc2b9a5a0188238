use serde::{Deserialize, Serialize};

use super::{ModelError, ModelEvent, StopReason, Usage};

/// One whole turn of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Turn {
    /// What it said.
    pub text: String,
    /// The tools it called, in its order.
    pub tool_calls: Vec<TurnCall>,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended.
    pub stop: StopReason,
}

/// One tool call of a turn, still without an id of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCall {
    /// The provider's id of the call.
    pub provider_id: String,
    /// The tool's name.
    pub tool: String,
    /// The raw text of the arguments, which need not be JSON.
    pub arguments: String,
}

/// Puts the events of one stream together, and says whether they make a whole turn.
#[derive(Clone, Debug, Default)]
pub struct TurnCollector {
    text: String,
    calls: Vec<Collected>,
    usage: Usage,
    stop: Option<StopReason>,
}

#[derive(Clone, Debug)]
struct Collected {
    index: u32,
    finished: bool,
    call: TurnCall,
}

impl TurnCollector {
    /// A collector for one stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    ///
    /// # Errors
    ///
    /// Kind [`Protocol`](super::ModelErrorKind::Protocol) when the event cannot come at this
    /// place: after the end, for a call that never started, twice for one call. Nothing of the
    /// turn may be used then.
    pub fn push(&mut self, event: &ModelEvent) -> Result<(), ModelError> {
        if self.stop.is_some() {
            return Err(ModelError::protocol(
                "the model sent more after the end of its turn",
            ));
        }
        match event {
            ModelEvent::TextDelta { text } => self.text.push_str(text),
            ModelEvent::ReasoningDelta { .. } => {}
            ModelEvent::ToolCallStarted {
                index,
                provider_id,
                tool,
            } => {
                if self.calls.iter().any(|collected| collected.index == *index) {
                    return Err(ModelError::protocol(format!(
                        "the model started tool call {index} twice"
                    )));
                }
                self.calls.push(Collected {
                    index: *index,
                    finished: false,
                    call: TurnCall {
                        provider_id: provider_id.clone(),
                        tool: tool.clone(),
                        arguments: String::new(),
                    },
                });
            }
            ModelEvent::ToolCallDelta { index, json } => {
                self.open(*index)?.call.arguments.push_str(json);
            }
            ModelEvent::ToolCallFinished { index } => self.open(*index)?.finished = true,
            ModelEvent::Usage(usage) => self.usage = *usage,
            ModelEvent::Ended { stop } => {
                if let Some(open) = self.calls.iter().find(|collected| !collected.finished) {
                    return Err(ModelError::protocol(format!(
                        "the model ended its turn within tool call {} of `{}`",
                        open.index, open.call.tool
                    )));
                }
                self.stop = Some(stop.clone());
            }
        }
        Ok(())
    }

    /// The turn, if it is whole.
    ///
    /// # Errors
    ///
    /// Kind [`Truncated`](super::ModelErrorKind::Truncated) when the stream had no end event.
    pub fn finish(self) -> Result<Turn, ModelError> {
        let Some(stop) = self.stop else {
            return Err(ModelError::truncated(
                "the model's stream stopped before the end of its turn; nothing of the turn was \
                 used, and the run can be continued",
            ));
        };
        let mut calls = self.calls;
        calls.sort_by_key(|collected| collected.index);
        Ok(Turn {
            text: self.text,
            tool_calls: calls.into_iter().map(|collected| collected.call).collect(),
            usage: self.usage,
            stop,
        })
    }

    fn open(&mut self, index: u32) -> Result<&mut Collected, ModelError> {
        self.calls
            .iter_mut()
            .find(|collected| collected.index == index && !collected.finished)
            .ok_or_else(|| {
                ModelError::protocol(format!(
                    "the model continued tool call {index}, which is not open"
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use super::*;
    use crate::model::ModelErrorKind;

    fn started(index: u32) -> ModelEvent {
        ModelEvent::ToolCallStarted {
            index,
            provider_id: format!("p-{index}"),
            tool: "t".into(),
        }
    }

    fn delta(index: u32, json: &str) -> ModelEvent {
        ModelEvent::ToolCallDelta {
            index,
            json: json.into(),
        }
    }

    fn ended() -> ModelEvent {
        ModelEvent::Ended {
            stop: StopReason::ToolCalls,
        }
    }

    #[test]
    fn interleaved_calls_are_put_together_and_ordered_by_index() {
        let mut collector = TurnCollector::new();
        for event in [
            started(1),
            started(0),
            delta(1, "{\"b\""),
            delta(0, "{\"a\""),
            delta(1, ":2}"),
            delta(0, ":1}"),
            ModelEvent::ToolCallFinished { index: 1 },
            ModelEvent::ToolCallFinished { index: 0 },
            ended(),
        ] {
            collector.push(&event).unwrap();
        }
        let arguments: Vec<_> = collector
            .finish()
            .unwrap()
            .tool_calls
            .into_iter()
            .map(|call| call.arguments)
            .collect();
        assert_eq!(arguments, ["{\"a\":1}", "{\"b\":2}"]);
    }

    #[test]
    fn events_that_cannot_come_are_refused() {
        let cases: [&[ModelEvent]; 5] = [
            &[delta(0, "x")],
            &[started(0), started(0)],
            &[started(0), ended()],
            &[
                started(0),
                ModelEvent::ToolCallFinished { index: 0 },
                delta(0, "x"),
            ],
            &[ended(), ended()],
        ];
        for case in cases {
            let mut collector = TurnCollector::new();
            let outcome = case.iter().try_for_each(|event| collector.push(event));
            assert_eq!(
                outcome.unwrap_err().kind(),
                ModelErrorKind::Protocol,
                "{case:?}"
            );
        }
    }

    #[test]
    fn without_an_end_nothing_counts() {
        let mut collector = TurnCollector::new();
        collector.push(&started(0)).unwrap();
        collector.push(&delta(0, "{}")).unwrap();
        collector
            .push(&ModelEvent::ToolCallFinished { index: 0 })
            .unwrap();
        let error = collector.finish().unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::Truncated);
    }
}
