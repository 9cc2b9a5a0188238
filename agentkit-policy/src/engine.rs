//! The engine: one policy set in force, swapped as a whole.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::declaration::{PolicySource, Settings, ToolDeclaration};
use crate::load_error::LoadError;
use crate::set::PolicySet;
use crate::slice::Schemas;

/// Holds the policy set in force and replaces it in one step.
///
/// Deciding goes through [`current`](Self::current): whoever holds the returned set decides all
/// its questions under one version, even while another one is being loaded.
#[derive(Debug)]
pub struct PolicyEngine {
    tools: Vec<ToolDeclaration>,
    settings: Settings,
    current: ArcSwap<PolicySet>,
    /// Reloads happen one after the other, so that the last one to be called is the one that stays.
    reloading: Mutex<()>,
    /// Those of the loads before.
    schemas: Schemas,
}

impl PolicyEngine {
    /// An engine without policies of the application's own: every call is permitted unattended,
    /// and anyone authenticated may approve. Arguments are not mapped, since nothing reads them.
    ///
    /// # Errors
    ///
    /// If a tool's name is unfit or taken twice.
    pub fn built_in(tools: Vec<ToolDeclaration>) -> Result<Self, LoadError> {
        let settings = Settings::default();
        let set = PolicySet::built_in(&tools, &settings)?;
        Ok(Self::holding(tools, settings, set, Schemas::default()))
    }

    /// Loads the application's policies. From here on default deny holds for all three questions,
    /// also when `sources` is empty.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with tools and policies, several findings at once.
    pub fn load(tools: Vec<ToolDeclaration>, sources: &[PolicySource]) -> Result<Self, LoadError> {
        Self::load_with(tools, sources, Settings::default())
    }

    /// Like [`load`](Self::load), with a vocabulary and limits other than the default ones.
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load).
    pub fn load_with(
        tools: Vec<ToolDeclaration>,
        sources: &[PolicySource],
        settings: Settings,
    ) -> Result<Self, LoadError> {
        let schemas = Schemas::default();
        let set = PolicySet::load(&tools, sources, &settings, &schemas)?;
        Ok(Self::holding(tools, settings, set, schemas))
    }

    /// Puts other policies in force, in one step, for every decision that starts after it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the new policies; the old set stays in force then.
    pub fn reload(&self, sources: &[PolicySource]) -> Result<(), LoadError> {
        let _one_at_a_time = self
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let set = PolicySet::load(&self.tools, sources, &self.settings, &self.schemas)?;
        self.current.store(Arc::new(set));
        Ok(())
    }

    /// The set in force now.
    pub fn current(&self) -> Arc<PolicySet> {
        self.current.load_full()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn holding(
        tools: Vec<ToolDeclaration>,
        settings: Settings,
        set: PolicySet,
        schemas: Schemas,
    ) -> Self {
        Self {
            tools,
            settings,
            current: ArcSwap::from_pointee(set),
            reloading: Mutex::new(()),
            schemas,
        }
    }
}
