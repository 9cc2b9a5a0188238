//! Threads: conversations over many runs.
//!
//! Each message of a user is a run on the thread; what was said in it belongs to the run, is
//! written once and never copied. A new run is shown the last messages of the runs before it, so
//! two instances that write one thread at the same time lose nothing: each writes its own run,
//! and the places in the thread are given out one after another.
//!
//! # While something is pending
//!
//! A message that arrives while a call of an earlier run waits for a person starts a run of its
//! own. The model is shown the waiting call with a result that says so, which is what providers
//! ask for (each call has one result, right after it), and what lets the model answer "any news?"
//! instead of asking a second time. The earlier run stays as it is and can be decided at any
//! time; what comes of it stands at its own place in the thread from then on.
//!
//! # Answers from the chat
//!
//! A thread that [answers questions](Thread::answers_questions) lets a user answer a tool's
//! question by saying it. The next message is put to the model together with the open questions
//! and the schemas of their answers; what the model reads out of it is checked as any answer is.
//! If it fits, the message becomes a part of the waiting run, which goes on; if it does not, or
//! the message is about something else, the question stays open and the message starts a run of
//! its own. Approvals are never given in this way.

mod history;
mod thread;

pub(crate) use history::{history, thread_history};
pub use thread::Thread;
pub(crate) use thread::ThreadOptions;
