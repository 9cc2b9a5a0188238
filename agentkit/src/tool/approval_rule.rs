use std::{
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use super::Tool;
use crate::call::Canonical;

/// What a tool's declaration says about approval: `#[tool(require_approval …)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRule {
    /// Whether calls need an approval.
    pub required: bool,
    /// Which calls need one; every call where there is no condition.
    pub when: Option<ApprovalCondition>,
    /// Why, for whoever is asked.
    pub why: Option<String>,
    /// How many different people must approve.
    pub quorum: u32,
    /// How long a request stays open, where the tool says so.
    pub ttl: Option<Duration>,
}

impl ApprovalRule {
    /// Each call needs one approval.
    pub fn required() -> Self {
        Self {
            required: true,
            ..Self::default()
        }
    }

    /// Whether every call needs an approval, whatever its arguments are.
    pub const fn is_unconditional(&self) -> bool {
        self.required && self.when.is_none()
    }

    /// What the rule says of a call with these effective arguments: the condition is decided. One
    /// that fails or panics means approval.
    pub fn for_call(&self, tool: &str, arguments: &Canonical) -> Self {
        let mut decided = self.clone();
        let Some(condition) = decided.when.take().filter(|_| self.required) else {
            return decided;
        };
        match condition.holds(arguments) {
            Ok(holds) => decided.required = holds,
            Err(error) => {
                tracing::warn!(%tool, %error, "the tool's condition for approvals cannot be decided");
                let unknown = "whether the tool needs an approval could not be told";
                decided.why = Some(match decided.why {
                    Some(why) => format!("{why} ({unknown})"),
                    None => unknown.to_owned(),
                });
            }
        }
        decided
    }
}

impl Default for ApprovalRule {
    /// No approval on the part of the declaration; a policy may still ask for one.
    fn default() -> Self {
        Self {
            required: false,
            when: None,
            why: None,
            quorum: 1,
            ttl: None,
        }
    }
}

type Predicate = dyn Fn(&Canonical) -> Result<bool, Box<dyn Error + Send + Sync>> + Send + Sync;

/// A condition over the arguments of a call: `#[tool(require_approval(when = …))]`.
#[derive(Clone)]
pub struct ApprovalCondition(Arc<Predicate>);

impl ApprovalCondition {
    /// A condition over the effective arguments of any tool.
    pub fn new(
        predicate: impl Fn(&Canonical) -> Result<bool, Box<dyn Error + Send + Sync>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(predicate))
    }

    /// A condition over the typed arguments of the tool `T`.
    pub fn typed<T, F, R>(predicate: F) -> Self
    where
        T: Tool,
        F: Fn(&T::Args) -> R + Send + Sync + 'static,
        R: NeedsApproval,
    {
        Self::new(move |arguments| predicate(&arguments.decode::<T::Args>()?).needs_approval())
    }

    /// Whether the condition holds.
    ///
    /// # Errors
    ///
    /// When it cannot be decided, or panics.
    pub fn holds(&self, arguments: &Canonical) -> Result<bool, Box<dyn Error + Send + Sync>> {
        catch_unwind(AssertUnwindSafe(|| self.0(arguments)))
            .unwrap_or_else(|_| Err("it panicked".into()))
    }
}

impl PartialEq for ApprovalCondition {
    /// Two conditions are equal if they are the same one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ApprovalCondition {}

impl fmt::Debug for ApprovalCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApprovalCondition(…)")
    }
}

/// What a condition for approvals may come to: `bool`, or a `Result` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether a call needs an approval",
    label = "neither `bool` nor `Result<bool, E>`",
    note = "a condition is a function or closure of the tool's arguments: \
            `when = |args| args.amount_cents > 5000`"
)]
pub trait NeedsApproval {
    /// Whether it does.
    ///
    /// # Errors
    ///
    /// When that cannot be told, which means that it does.
    fn needs_approval(self) -> Result<bool, Box<dyn Error + Send + Sync>>;
}

impl NeedsApproval for bool {
    fn needs_approval(self) -> Result<bool, Box<dyn Error + Send + Sync>> {
        Ok(self)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> NeedsApproval for Result<bool, E> {
    fn needs_approval(self) -> Result<bool, Box<dyn Error + Send + Sync>> {
        self.map_err(Into::into)
    }
}
