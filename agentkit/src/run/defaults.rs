use std::time::Duration;

use super::RunOptions;
use crate::{
    gate::{RequireApproval, RunDemand},
    model::ModelRequest,
};

/// What an agent declares for all its runs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Defaults {
    /// Which calls of the agent need approval. A run's own option can ask for more, never for
    /// less. Unlike a run's predicate this one is there again after a restart.
    pub require_approval: RequireApproval,
    /// How often the model may answer in a run that does not say so itself. In a run below
    /// another one, the lower of the two.
    pub max_steps: Option<u32>,
    /// How many tokens the model may read and write in a run that does not say so itself.
    pub max_tokens: Option<u64>,
    /// For how long a run may be worked on that does not say so itself.
    pub max_time: Option<Duration>,
    /// The model's sampling temperature; the provider's default when absent.
    pub temperature: Option<f64>,
    /// The most tokens the model may write in one answer; the provider's default when absent.
    pub max_output_tokens: Option<u32>,
}

impl Defaults {
    /// The demand for a call that nothing else demanded of, where the predicate cannot be asked.
    pub(crate) const fn or_unasked(&self, demand: RunDemand) -> RunDemand {
        match demand {
            RunDemand::None => self.require_approval.demand_unasked(),
            demand => demand,
        }
    }

    /// The options of a run of the agent below a run with `above`.
    pub(crate) fn below(&self, above: &RunOptions) -> RunOptions {
        let mut options = above.below();
        if let Some(own) = self.max_steps {
            options.max_steps = options.max_steps.min(own);
        }
        options
    }

    /// The request with the settings of the model.
    pub(crate) fn of_model(&self, mut request: ModelRequest) -> ModelRequest {
        request.temperature = self.temperature;
        request.max_output_tokens = self.max_output_tokens;
        request
    }
}
