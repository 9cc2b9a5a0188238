use serde::{Deserialize, Serialize};

/// The thread on which a run takes place. Its id is the application's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Thread {
    pub(crate) id: String,
    pub(crate) owner: Option<String>,
    pub(crate) window: u32,
    pub(crate) read_only: bool,
    pub(crate) answers_questions: bool,
}

impl Thread {
    /// The thread of this id (1 to 128 bytes). It is made by the first run on it.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            owner: None,
            window: 40,
            read_only: false,
            answers_questions: false,
        }
    }

    /// Whose thread it is: the requester's, unless said otherwise, as where a team shares one.
    /// The first run on the thread makes its owner the owner; a run for another owner is
    /// refused.
    pub fn owner(mut self, id: impl Into<String>) -> Self {
        self.owner = Some(id.into());
        self
    }

    /// How many messages of earlier runs the model is shown, at most; 40 unless said otherwise.
    pub fn window(mut self, messages: u32) -> Self {
        self.window = messages;
        self
    }

    /// The run reads the thread and does not become a part of it.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// A message may answer an open question of an earlier run on the thread.
    pub fn answers_questions(mut self) -> Self {
        self.answers_questions = true;
        self
    }
}

/// What is kept of a thread with the options of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ThreadOptions {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) window: u32,
    pub(crate) read_only: bool,
    /// Up to where a run that only reads the thread reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<i64>,
}
