#![doc = include_str!("../../README.md")]

pub mod agent;
pub mod approval;
pub mod call;
pub mod gate;
pub mod journal;
pub mod memory;
pub mod model;
#[cfg(feature = "otel")]
pub mod otel;
pub mod run;
#[cfg(feature = "server")]
pub mod server;
pub mod store;
pub mod tool;

pub use agentkit_macros::{agent, tool, tools};
pub use agentkit_policy as policy;

/// Chapters.
pub mod docs {
    #[doc = include_str!("docs/agent_approval.md")]
    pub mod agent_approval {}
}

/// What programs usually need: `use agentkit::prelude::*`.
pub mod prelude {
    pub use crate::{
        agent,
        agent::{Agent, Hosted, Outcome, Pending},
        approval::Decision,
        call::Principal,
        memory::Thread,
        run::{Ending, Input, RunEvent},
        store::Store,
        tool,
        tool::{Flow, RunContext, Tool},
        tools,
    };
}

/// What the expansions of the macros refer to. Not covered by any promise of stability.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        agent::nested::*, agent::*, approval::*, call::*, gate::RequireApproval, run::Defaults,
        tool::private::*, tool::*,
    };
}
