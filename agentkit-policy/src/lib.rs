//! Cedar policies for tool calls: allow, require approval, deny; never fail open.

mod call;
mod decision;
mod declaration;
mod engine;
mod load_error;
mod set;

pub use call::{Approvals, Call, User};
pub use decision::{
    Decision, Effect, EvaluationError, Outcome, Permission, PolicyRef, Question, RefusedVote,
    Release, ShadowDecision, Verdict,
};
pub use declaration::{AttributeType, AttributeValue, PolicySource, Settings, ToolDeclaration};
pub use engine::PolicyEngine;
pub use load_error::{Finding, LoadError};
pub use set::PolicySet;
