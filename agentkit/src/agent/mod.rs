//! Agents: what `#[agent]` declares, how one is hosted, and typed access to what waits in its
//! runs.

mod builder;
mod definition;
mod hosted;
mod pending;
mod structured;

pub use builder::{AgentBuilder, BuildError};
pub use definition::{Agent, AgentDefinition, PendingSet, ResumeSet};
pub use hosted::{GenerateError, Hosted, Outcome, Suspended, SuspendedRun};
pub use pending::{Approval, Pending, PendingError, Question};
pub use structured::OutcomeAs;
