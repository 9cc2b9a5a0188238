//! Tests of policies in Rust: calls from typed arguments, a fixed clock, exact expectations.
//!
//! ```
//! use agentkit_policy::testing::PolicyTest;
//! use agentkit_policy::{PolicyEngine, PolicySource, ToolDeclaration, User};
//! use serde_json::json;
//!
//! let pay = ToolDeclaration::new("pay", json!({
//!     "type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]
//! }));
//! let engine = PolicyEngine::load(vec![pay], &[PolicySource::new("pay.cedar", r#"
//!     @id("small") permit (principal, action == Action::"pay", resource)
//!     when { context.input.cents < 100 };
//!     @id("large") permit (principal, action == Action::"pay with approval", resource)
//!     when { context.approvals.count >= 2 };
//!     @id("bosses") permit (principal in Role::"boss", action == Action::"approve pay", resource);
//! "#)])?;
//!
//! let policies = PolicyTest::new(&engine).at(1_770_000_000_000_000);
//! let ann = User::new("ann");
//! policies.call("pay", &json!({"cents": 99}), &ann).allowed();
//! policies
//!     .call("pay", &json!({"cents": 100}), &ann)
//!     .requires_approval(2)
//!     .may_approve(&User::new("bob").role("boss"))
//!     .may_not_approve(&ann);
//! # Ok::<(), agentkit_policy::LoadError>(())
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::attribute::AttributeValue;
use crate::call::{Approvals, Call, Facts, User};
use crate::decision::{Outcome, Permission};
use crate::engine::PolicyEngine;
use crate::explain::Explanation;
use crate::provider::Provided;
use crate::session::SessionFacts;
use crate::set::PolicySet;

/// A policy set under test, with a clock that stands still.
///
/// Every expectation is exact: an evaluation error fails it, whatever the outcome.
#[derive(Clone, Debug)]
pub struct PolicyTest {
    set: Arc<PolicySet>,
    agent: String,
    now: i64,
    session: Option<SessionFacts>,
    provided: Option<Provided>,
}

impl PolicyTest {
    /// Tests the set that is in force now, at the beginning of 1970, with an agent named `agent`.
    pub fn new(engine: &PolicyEngine) -> Self {
        Self {
            set: engine.current(),
            agent: "agent".to_owned(),
            now: 0,
            session: None,
            provided: None,
        }
    }

    /// Sets what is known of the past; without it `context.session` is as it is before the first
    /// call, and declared facts that are no times are unknown.
    pub fn session(mut self, facts: SessionFacts) -> Self {
        self.session = Some(facts);
        self
    }

    /// Sets what the application's entity provider says.
    pub fn provided(mut self, provided: Provided) -> Self {
        self.provided = Some(provided);
        self
    }

    /// Sets the clock, in microseconds since the Unix epoch, UTC.
    pub fn at(mut self, now: i64) -> Self {
        self.now = now;
        self
    }

    /// Names the agent that makes the calls.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = name.into();
        self
    }

    /// A call on behalf of a user.
    ///
    /// # Panics
    ///
    /// If the arguments cannot be serialised.
    #[track_caller]
    pub fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &(impl Serialize + ?Sized),
        user: &'a User,
    ) -> TestedCall<'a> {
        let arguments = serde_json::to_value(arguments);
        assert!(
            arguments.is_ok(),
            "the arguments of `{tool}` cannot be serialised"
        );
        TestedCall {
            test: self,
            tool,
            arguments: arguments.unwrap_or_default(),
            user,
            session: self
                .session
                .clone()
                .unwrap_or_else(|| SessionFacts::fresh("test", self.agent.clone(), self.now)),
            derived: BTreeMap::new(),
        }
    }
}

/// A call about which something is expected.
#[derive(Clone, Debug)]
pub struct TestedCall<'a> {
    test: &'a PolicyTest,
    tool: &'a str,
    arguments: Value,
    user: &'a User,
    session: SessionFacts,
    derived: BTreeMap<String, AttributeValue>,
}

impl TestedCall<'_> {
    /// Sets a fact of `context.session` for this call.
    pub fn fact(mut self, name: &str, value: impl Into<AttributeValue>) -> Self {
        self.session.insert(name, value);
        self
    }

    /// Sets a fact that the tool derives from the arguments.
    pub fn derived(mut self, name: &str, value: impl Into<AttributeValue>) -> Self {
        self.derived.insert(name.to_owned(), value.into());
        self
    }

    fn as_call(&self) -> Call<'_> {
        Call {
            tool: self.tool,
            arguments: &self.arguments,
            user: self.user,
            agent: &self.test.agent,
            run: "test",
            step: 0,
            now: self.test.now,
            facts: Facts {
                session: Some(&self.session),
                derived: Some(&self.derived),
                provided: self.test.provided.as_ref(),
            },
        }
    }

    /// What was decided and why.
    pub fn explanation(&self) -> Explanation {
        self.test.set.explain(&self.as_call())
    }

    /// Expects that the call may run on its own.
    ///
    /// # Panics
    ///
    /// If it may not.
    #[track_caller]
    pub fn allowed(self) -> Self {
        self.expect(Outcome::Allow)
    }

    /// Expects that the call needs this many approvals.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[track_caller]
    pub fn requires_approval(self, quorum: u32) -> Self {
        self.expect(Outcome::RequireApproval { quorum })
    }

    /// Expects that exactly this policy forbids the call.
    ///
    /// # Panics
    ///
    /// If it does not, or another one does so too.
    #[track_caller]
    pub fn denied_by(self, policy: &str) -> Self {
        let explanation = self.explanation();
        let by: Vec<&str> = explanation
            .decision
            .determining
            .iter()
            .map(|policy| policy.id.as_str())
            .collect();
        assert!(
            explanation.decision.outcome == Outcome::Deny && by == [policy],
            "expected a denial by `{policy}` alone, got\n{explanation}"
        );
        assert_no_errors(&explanation);
        self
    }

    /// Expects that no policy permits the call and none forbids it.
    ///
    /// # Panics
    ///
    /// If one does.
    #[track_caller]
    pub fn denied_by_default(self) -> Self {
        let explanation = self.explanation();
        assert!(
            explanation.decision.outcome == Outcome::Deny
                && explanation.decision.determining.is_empty(),
            "expected a denial by default, got\n{explanation}"
        );
        assert_no_errors(&explanation);
        self
    }

    /// Expects that a person may approve the call, asked for now and without other votes.
    ///
    /// # Panics
    ///
    /// If they may not.
    #[track_caller]
    pub fn may_approve(self, approver: &User) -> Self {
        let permission = self.permission(approver);
        assert!(
            permission.permitted && permission.errors.is_empty(),
            "expected that `{}` may approve, but {}: {permission:?}",
            approver.id,
            permission.why
        );
        self
    }

    /// Expects that a person may not approve the call.
    ///
    /// # Panics
    ///
    /// If they may.
    #[track_caller]
    pub fn may_not_approve(self, approver: &User) -> Self {
        let permission = self.permission(approver);
        assert!(
            !permission.permitted && permission.errors.is_empty(),
            "expected that `{}` may not approve: {permission:?}",
            approver.id
        );
        self
    }

    fn permission(&self, approver: &User) -> Permission {
        let asked_now = Approvals::requested_at(self.test.now);
        self.test
            .set
            .may_approve(&self.as_call(), approver, &asked_now)
    }

    #[track_caller]
    fn expect(self, outcome: Outcome) -> Self {
        let explanation = self.explanation();
        assert!(
            explanation.decision.outcome == outcome,
            "expected to {outcome}, got\n{explanation}"
        );
        assert_no_errors(&explanation);
        self
    }
}

#[track_caller]
fn assert_no_errors(explanation: &Explanation) {
    assert!(
        explanation.decision.errors.is_empty(),
        "the outcome is as expected, but the evaluation was not clean:\n{explanation}"
    );
}
