use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Agent, GenerateError, Hosted, Outcome, Suspended};
use crate::{
    call::RunId,
    run::{FinishReason, Input, OutputSchema, RunError},
};

/// How working on a run ended whose last answer is to be a `T`.
#[non_exhaustive]
pub enum OutcomeAs<A: Agent, T> {
    /// The run is over, and its answer is a `T`.
    Finished {
        /// The run.
        run: RunId,
        /// The answer.
        value: T,
    },
    /// The run is over without an answer that fits, as when its steps were used up.
    Unfinished {
        /// The run.
        run: RunId,
        /// The model's last text.
        text: String,
        /// Why the run is over.
        reason: FinishReason,
        /// What is wrong with the text as a `T`.
        why: String,
    },
    /// The run waits for people.
    Suspended(Suspended<A>),
}

impl<A: Agent, T: JsonSchema + DeserializeOwned> OutcomeAs<A, T> {
    /// An outcome whose text is read as a `T`.
    pub fn of(outcome: Outcome<A>) -> Self {
        let (run, text, reason) = match outcome {
            Outcome::Finished { run, text, reason } => (run, text, reason),
            Outcome::Suspended(suspended) => return Self::Suspended(suspended),
        };
        let read = OutputSchema::of::<T>()
            .read(&text)
            .and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()));
        match read {
            Ok(value) => Self::Finished { run, value },
            Err(why) => Self::Unfinished {
                run,
                text,
                reason,
                why,
            },
        }
    }
}

impl<A: Agent> Hosted<A> {
    /// Starts a run whose last answer is a `T`, and waits until it is over or waits for people.
    ///
    /// The model is told the schema of `T`. An answer that does not fit is asked for again, with
    /// what is wrong with it, as long as the run has steps left. The form is kept with the run: it
    /// holds when the run is continued after a suspension, in any process.
    ///
    /// # Errors
    ///
    /// When the model or the store fails. A run that was started can be resumed.
    pub async fn generate_as<T: JsonSchema + DeserializeOwned>(
        &self,
        input: Input,
    ) -> Result<OutcomeAs<A, T>, GenerateError> {
        self.generate(input.answering::<T>())
            .await
            .map(OutcomeAs::of)
    }

    /// Continues a run that was started by [`generate_as`](Self::generate_as).
    ///
    /// # Errors
    ///
    /// When there is no such run of this agent, or the model or the store fails.
    pub async fn resume_as<T: JsonSchema + DeserializeOwned>(
        &self,
        run: &RunId,
    ) -> Result<OutcomeAs<A, T>, RunError> {
        self.resume_and_wait(run).await.map(OutcomeAs::of)
    }
}
