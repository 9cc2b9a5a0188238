//! The questions that were put to Cedar, for those who measure what a test suite asks.

use std::sync::{Arc, Mutex, PoisonError};

use cedar_policy::{Entities, Request};

use crate::decision::Question;

/// One question and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) tool: String,
    pub(crate) question: Question,
    pub(crate) request: Request,
    pub(crate) entities: Entities,
    pub(crate) permitted: bool,
    pub(crate) forbidden: bool,
    /// Ids of the determining policies.
    pub(crate) reasons: Vec<String>,
}

/// Gathers the questions of the sets that it is attached to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listener(Arc<Mutex<Vec<Heard>>>);

impl Listener {
    pub(crate) fn hear(&self, heard: Heard) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(heard);
    }

    /// What was heard since the last time.
    pub(crate) fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
