use serde::{Deserialize, Serialize};

use crate::{
    call::Principal,
    gate::{RequireApproval, StoredDemand},
};

/// What a run is started with.
#[derive(Clone, Debug)]
#[must_use]
pub struct Input {
    pub(crate) requester: Principal,
    pub(crate) text: String,
    pub(crate) options: RunOptions,
}

impl Input {
    /// A message from `requester`, on whose behalf the agent will act. The requester comes from
    /// the application's authentication.
    pub fn new(requester: Principal, text: impl Into<String>) -> Self {
        Self {
            requester,
            text: text.into(),
            options: RunOptions::default(),
        }
    }

    /// Whether the run asks for approval of its calls, whatever tools and policy say.
    pub fn require_approval(mut self, option: RequireApproval) -> Self {
        self.options.require_approval = option;
        self
    }

    /// How often the model may answer, over all suspensions.
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.options.max_steps = steps;
        self
    }
}

/// Options of a run: they hold across every suspension.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Whether the run asks for approval of its calls.
    pub require_approval: RequireApproval,
    /// How often the model may answer; 32 unless said otherwise.
    pub max_steps: u32,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            require_approval: RequireApproval::Off,
            max_steps: 32,
        }
    }
}

/// What is stored of the options.
#[derive(Serialize, Deserialize)]
struct Stored {
    require_approval: StoredDemand,
    max_steps: u32,
}

impl RunOptions {
    pub(crate) fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Stored {
            require_approval: self.require_approval.stored(),
            max_steps: self.max_steps,
        })
    }

    pub(crate) fn from_stored(text: &str) -> Result<Self, serde_json::Error> {
        let stored: Stored = serde_json::from_str(text)?;
        Ok(Self {
            require_approval: stored.require_approval.restored(),
            max_steps: stored.max_steps,
        })
    }
}
