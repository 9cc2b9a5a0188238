//! Agents: what `#[agent]` declares, how one is hosted, and typed access to what waits in its
//! runs.

mod builder;
mod definition;
mod governing;
mod hosted;
#[doc(hidden)]
pub mod nested;
mod pending;
mod structured;
mod task;

pub use builder::{AgentBuilder, BuildError};
pub use definition::{Agent, AgentDefinition, DynamicTools, PendingSet, ResumeSet};
pub use hosted::{GenerateError, Hosted, Outcome, Suspended, SuspendedRun};
pub use nested::OtherAnswer;
pub use pending::{Approval, Pending, PendingError, Question};
pub use structured::OutcomeAs;
pub use task::TaskApproval;
