//! Cedar policies for tool calls: allow, require approval, deny; never fail open.

mod ask;
mod call;
mod decision;
mod declaration;
mod engine;
mod lint;
mod load;
mod load_error;
mod policy;
mod set;
mod shape;
mod slice;
mod source;
mod tool;

pub use call::{Approvals, Call, User};
pub use decision::{
    Decision, Effect, EvaluationError, Outcome, Permission, PolicyRef, Question, RefusedVote,
    Release, ShadowDecision, Verdict,
};
pub use declaration::{AttributeType, AttributeValue, PolicySource, Settings, ToolDeclaration};
pub use engine::PolicyEngine;
pub use load_error::{Finding, LoadError};
pub use set::PolicySet;
