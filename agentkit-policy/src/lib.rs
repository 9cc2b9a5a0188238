//! Cedar policies for tool calls: allow, require approval, deny; never fail open.
//!
//! A model wants to call a tool on behalf of a person. Policies in
//! [Cedar](https://www.cedarpolicy.com) say whether the call may run on its own, needs people who
//! approve it, or may not run. The crate knows nothing of agents, models or databases.
//!
//! # Three outcomes from three questions
//!
//! Cedar answers yes or no. For a tool `T` it is therefore asked up to three questions, each an
//! action of its own; `resource` is the agent that makes the call.
//!
//! | action | principal | permitted means |
//! |---|---|---|
//! | `Action::"T"` | the person on whose behalf the agent acts | the call may run on its own |
//! | `Action::"T with approval"` | the same person | it may run with the approvals in `context.approvals` |
//! | `Action::"approve T"` | the approver | this person may approve the call |
//!
//! A `permit` names exactly one question; a `forbid` may name several, since
//! `action in Action::"T"` covers both `T` and `T with approval`. Groups come from the
//! declarations: `Action::"all tools"`, `Action::"read-only tools"` and
//! `Action::"destructive tools"` for forbids, and each of them with ` unattended` or
//! ` with approval` after it, or `approve ` before it, for permits.
//!
//! ```
//! use agentkit_policy::{Approvals, Call, Facts, Outcome, PolicyEngine, PolicySource};
//! use agentkit_policy::{ToolDeclaration, User, Verdict};
//! use serde_json::json;
//!
//! let refund = ToolDeclaration::new("issue_refund", json!({
//!     "type": "object",
//!     "properties": {"order_id": {"type": "string"}, "amount_cents": {"type": "integer"}},
//!     "required": ["order_id", "amount_cents"]
//! }));
//! let policies = PolicySource::new("refunds.cedar", r#"
//!     @id("small-refunds-run-alone")
//!     permit (principal in Role::"clerk", action == Action::"issue_refund", resource)
//!     when { context.input.amount_cents < 5000 };
//!
//!     @id("larger-refunds-need-one-approval")
//!     permit (principal in Role::"clerk", action == Action::"issue_refund with approval", resource)
//!     when { context.approvals.count >= 1 };
//!
//!     @id("finance-approves")
//!     permit (principal in Role::"finance", action == Action::"approve issue_refund", resource);
//!
//!     @id("nobody-approves-their-own")
//!     forbid (principal, action == Action::"approve issue_refund", resource)
//!     when { principal == context.requester };
//! "#);
//! let engine = PolicyEngine::load(vec![refund], &[policies])?;
//! let set = engine.current();
//!
//! let clara = User::new("clara").role("clerk");
//! let arguments = json!({"order_id": "o-17", "amount_cents": 12000});
//! let now = 1_770_000_000_000_000;
//! let call = Call {
//!     tool: "issue_refund", arguments: &arguments, user: &clara,
//!     agent: "refund-desk", run: "run-1", step: 0, now, facts: Facts::default(),
//! };
//! assert_eq!(set.decide(&call).outcome, Outcome::RequireApproval { quorum: 1 });
//!
//! let asked = Approvals::requested_at(now - 60_000_000);
//! let fay = User::new("fay").role("finance");
//! assert!(set.may_approve(&call, &fay, &asked).permitted);
//! assert!(!set.may_approve(&call, &clara, &asked).permitted);
//! assert_eq!(set.release(&call, &asked.approved_by(fay)).verdict, Verdict::Run);
//! # Ok::<(), agentkit_policy::LoadError>(())
//! ```
//!
//! [`decide`](PolicySet::decide) routes a call. [`release`](PolicySet::release) is asked just
//! before execution, with the approvals that the call really has; it asks for every approver
//! again. Enforced by the engine and not only by policy: one vote a person, agents never approve,
//! no request for approval lies in the future or is older than its greatest age.
//!
//! # What policies see
//!
//! `context.input` holds the arguments, `context.system.now` the time, `context.run` the run's
//! `id` and `step`, `context.tool` the declared hints; *approved* and *approve* add
//! `context.approvals` (`count`, `approvers`, `requested_at`), *approve* alone
//! `context.requester`. [`PolicySet::schema_text`] is the schema in Cedar's words.
//!
//! | JSON Schema | Cedar |
//! |---|---|
//! | boolean, string | `Bool`, `String` (at most 64 KiB) |
//! | integer | `Long`; outside of 64 bits the call is denied |
//! | number | `{ floor: Long, ceil: Long, exact?: decimal }` |
//! | string of format `date-time`, `date` | `datetime` |
//! | string of format `decimal`, `ipv4`, `ipv6`, `ip` | `decimal`, `ipaddr` |
//! | closed list of strings | an enumerated entity type named `tool__path` |
//! | property that may be missing or null | optional attribute; null is absent |
//! | object with declared keys | record; other keys deny the call |
//! | object with free keys | entity with tags and `keys: Set<String>`; beside declared keys it is the attribute `"*"` |
//! | array `x` | `x: Set<T>` and `x_count: Long`; elsewhere `{ items, count }` |
//! | tuple | record keyed `"0"`, `"1"`, … |
//! | enum with a tag | `{ kind, a?, b? }`, one attribute for each variant |
//! | `anyOf` without a tag | `{ str?, int?, num?, bool?, obj?, arr? }`; all that accept the value are filled in |
//! | recursion, any JSON | `{ present: Bool, bytes: Long, sha256: String }` |
//!
//! Three more records are there where something declares them:
//!
//! - `context.session`: facts about the past of the session and its people, always present ones
//!   (`id`, `agent`, `depth`, `turn`, `calls_since_user`, `started_at`, `labels`, `this`) and those
//!   of [`Settings::facts`] ([`FactDeclaration`]). The host computes what
//!   [`PolicySet::session_facts`] lists and hands it in as [`SessionFacts`]; what a host cannot
//!   compute it excludes with [`HostFacts`], and policies that read it do not load.
//! - `context.derived`: facts that a tool derives from its arguments
//!   ([`ToolDeclaration::derived`]).
//! - `context.app`, entity types and groups: what the application's [`EntityProvider`] adds.
//!
//! A fact that is read or declared and was not handed in denies the call; nothing is defaulted.
//!
//! Arguments are never read as Cedar's JSON, so nothing in them can pose as an entity or as an
//! extension value. Every question's context is held against the generated schema before it is
//! asked; what is not of its declared type denies.
//!
//! # Never fail open
//!
//! Cedar skips a policy whose evaluation fails. Here a failed `forbid` counts as matched, a failed
//! `permit` as not matched, and both are reported; an allow without a reason is a denial; everyone
//! named in a question is among its entities; evaluation has the stack that its tallest policy
//! needs; and only a tool's own policies are evaluated for it. Policies are validated strictly at
//! load, tool by tool: a misspelt field does not load.
//!
//! # Tests
//!
//! [`testing`] is for Rust. The feature `suite` reads test files in YAML and measures what they
//! reach, `proofs` proves their invariants with cvc5, and `cli` is the command that policy authors
//! run: `agentkit-policy test refunds.yaml --threshold 100 --mutants --prove`.
//!
//! # Versions
//!
//! [`PolicySet::digest`] names the set, [`PolicySet::slice_digest`] all that can influence the
//! decisions about one tool; layout, comments, annotations and policies in `@mode("log_only")` do
//! not change the latter, so that they void no approval.
//! [`PolicyEngine::reload`] swaps sets in one step, or keeps the old one and says why;
//! [`PolicyEngine::reload_files`] reads them from files, and with the feature `watch` the function
//! `watch` does so whenever a file changes.

mod answering;
mod ask;
mod attribute;
mod call;
mod cedar;
mod change;
#[cfg(feature = "cli")]
pub mod cli;
mod context_type;
mod decision;
mod declaration;
mod engine;
mod entities;
mod explain;
mod fact;
#[cfg(feature = "suite")]
mod heard;
mod index;
mod lint;
mod load;
mod load_error;
mod mention;
mod policy;
mod provider;
mod session;
mod set;
mod shape;
mod slice;
mod source;
#[cfg(feature = "suite")]
pub mod suite;
pub mod testing;
mod tool;
mod tool_file;
mod validate;
mod watch;

pub use attribute::{AttributeType, AttributeValue};
pub use call::{Approvals, Call, Facts, User};
pub use decision::{
    Decision, Effect, EvaluationError, Outcome, Permission, PolicyRef, Question, RefusedVote,
    Release, ShadowDecision, Verdict,
};
pub use declaration::{PolicySource, Settings, ToolDeclaration};
pub use engine::PolicyEngine;
pub use explain::{ApproverRule, Blocking, Explanation, NearMiss};
pub use fact::{
    Distinct, FactDeclaration, FactKind, FactScope, FactWindow, HostFacts, SameArguments, ValuePath,
};
pub use load_error::{Finding, LoadError};
pub use provider::{
    About, EntityName, EntityProvider, EntityType, Extension, Field, FieldType, FieldValue,
    Occasion, Provided, ProvidedEntity, ProviderError, Providing, ask_provider,
};
pub use session::{ReadFact, SessionFacts};
pub use set::PolicySet;
pub use watch::{FileError, PolicyFiles};
#[cfg(feature = "watch")]
pub use watch::{Watch, WatchError, watch};
