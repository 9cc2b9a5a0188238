//! One loaded policy set: the questions are put here.

use crate::call::{Approvals, Call, User};
use crate::decision::{Decision, Outcome, Permission, Release, Verdict};
use crate::declaration::{PolicySource, Settings, ToolDeclaration};
use crate::load_error::{Finding, LoadError};

/// A loaded, validated and sliced set of policies; immutable.
#[derive(Debug)]
pub struct PolicySet {
    digest: [u8; 32],
    built_in: bool,
    schema_text: String,
    findings: Vec<Finding>,
}

impl PolicySet {
    pub(crate) fn built_in(_: &[ToolDeclaration], _: &Settings) -> Result<Self, LoadError> {
        Ok(Self {
            digest: [0; 32],
            built_in: true,
            schema_text: String::new(),
            findings: Vec::new(),
        })
    }

    pub(crate) fn load(
        _: &[ToolDeclaration],
        _: &[PolicySource],
        _: &Settings,
    ) -> Result<Self, LoadError> {
        Ok(Self {
            digest: [0; 32],
            built_in: false,
            schema_text: String::new(),
            findings: Vec::new(),
        })
    }

    /// Decides whether a call may run alone, needs approvals, or may not run.
    pub fn decide(&self, _call: &Call<'_>) -> Decision {
        Decision {
            outcome: Outcome::Deny,
            determining: Vec::new(),
            errors: Vec::new(),
            demanded_by_declaration: false,
            shadow: None,
        }
    }

    /// Decides just before execution, with the approvals that the call really has; every approver
    /// is asked for again.
    pub fn release(&self, _call: &Call<'_>, _approvals: &Approvals) -> Release {
        Release {
            verdict: Verdict::Deny,
            counted: Vec::new(),
            refused: Vec::new(),
            determining: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Decides whether a person may approve a call that has these approvals so far.
    pub fn may_approve(
        &self,
        _call: &Call<'_>,
        _approver: &User,
        _so_far: &Approvals,
    ) -> Permission {
        Permission {
            permitted: false,
            why: String::new(),
            determining: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// SHA-256 over all policies sorted by id, the schema and the version of the mapping.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// SHA-256 of what can influence decisions about one tool; an approval is bound to it.
    /// None for a tool that was not declared.
    pub fn slice_digest(&self, _tool: &str) -> Option<[u8; 32]> {
        None
    }

    /// True for the set that is in force when the application gives no policies.
    pub fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// The Cedar schema against which the policies were validated, for editors and for reading.
    pub fn schema_text(&self) -> &str {
        &self.schema_text
    }

    /// What the load found worth a look although it does not stand in the way.
    pub fn warnings(&self) -> &[Finding] {
        &self.findings
    }
}
