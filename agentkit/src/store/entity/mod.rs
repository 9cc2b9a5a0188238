//! The rows, as sea-orm entities. What they mean is said in `migration`.

#![allow(
    unreachable_pub,
    reason = "sea-orm's derives write public items beside these"
)]

pub(super) mod calls;
pub(super) mod decisions;
pub(super) mod events;
pub(super) mod journal;
pub(super) mod labels;
pub(super) mod messages;
pub(super) mod policy_versions;
pub(super) mod roots;
pub(super) mod runs;
pub(super) mod scopes;
pub(super) mod threads;
