//! Changes the policies one by one and sees whether the suite notices.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cedar_policy::PolicyId;
use serde::Serialize;

use crate::decision::Question;
use crate::declaration::PolicySource;
use crate::load_error::{Finding, LoadError};
use crate::set::PolicySet;
use crate::slice::Schemas;
use crate::slice::Slice;

use super::Suite;
use super::bench::Bench;
use super::mutant::{Mutant, mutants};

/// How a suite did against changed policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mutation {
    /// Changes that a case noticed.
    pub killed: usize,
    /// Changes that do not load: a policy that says so little else cannot be had by mistake.
    pub refused: usize,
    /// Changes that no case noticed and that the file explains.
    pub explained: Vec<Survivor>,
    /// Changes that no case noticed.
    pub survivors: Vec<Survivor>,
    /// Explanations in the file that explain nothing any more.
    pub stale: Vec<String>,
    /// Changes that were not tried, for want of time.
    pub untried: usize,
}

impl Mutation {
    /// True if every change was tried and is noticed or explained, and nothing else is explained.
    pub fn passed(&self) -> bool {
        self.survivors.is_empty() && self.stale.is_empty() && self.untried == 0
    }
}

/// A change that no case noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Survivor {
    /// The policy's `@id`.
    pub policy: String,
    /// The source that holds it.
    pub file: String,
    /// Its line there.
    pub line: u32,
    /// `before => after`.
    pub change: String,
    /// Why no case can notice it, where the file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

enum Fate {
    Killed,
    Refused,
    Survived,
}

/// Tries every mutant, in parallel, until the time is up.
pub(crate) fn run(suite: &Suite, set: &PolicySet, limit: Duration) -> Result<Mutation, LoadError> {
    let texts: Vec<(&str, String)> = set
        .policies
        .iter()
        .map(|(id, held)| (id.as_str(), held.body.to_string()))
        .collect();
    // A policy whose text does not mean what its tree means cannot be changed through its text.
    let sources: Vec<PolicySource> = texts
        .into_iter()
        .map(|(id, text)| PolicySource::new(id, text))
        .collect();
    let again = PolicySet::load(&suite.tools, &sources, &suite.settings, &Schemas::default())?;
    if let Some(tool) = set
        .slices
        .keys()
        .find(|tool| again.slice_digest(tool) != set.slice_digest(tool))
    {
        return Err(LoadError::new(vec![
            Finding::about(
                "the policies do not survive being written anew, so they cannot be mutated",
            )
            .suggest("report the policies of this tool to the authors of agentkit-policy")
            .tool_named(tool),
        ]));
    }
    let bench = Bench::new(&suite.tools, &sources, &suite.settings)?;
    let tools: Vec<&str> = set.slices.keys().map(String::as_str).collect();
    let all: Vec<Mutant> = set
        .policies
        .iter()
        .filter(|(id, _)| !super::coverage::is_shadow(set, id))
        .flat_map(|(id, held)| mutants(id, &held.body, &tools, approvable(set, id)))
        .collect();
    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let fates: Mutex<Vec<(usize, Fate)>> = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while started.elapsed() < limit {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = all.get(index) else { return };
                    let fate = fate(suite, set, mutant, &bench);
                    fates
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, fate));
                }
            });
        }
    });
    let mut fates = fates.into_inner().unwrap_or_else(PoisonError::into_inner);
    fates.sort_by_key(|(index, _)| *index);
    Ok(tally(suite, set, &all, fates))
}

/// Whether approvals can let a call run about which a policy decides.
fn approvable(set: &PolicySet, policy: &str) -> bool {
    let permits = |slice: &Slice| {
        let asked = &slice.asked(Question::Approved).policies;
        asked
            .policies()
            .any(|p| p.effect() == cedar_policy::Effect::Permit)
    };
    set.slices
        .values()
        .any(|slice| holds(slice, policy) && permits(slice))
}

fn holds(slice: &Slice, policy: &str) -> bool {
    let id = PolicyId::new(policy);
    Question::ALL
        .into_iter()
        .any(|question| slice.asked(question).policies.policy(&id).is_some())
}

fn fate(suite: &Suite, base: &PolicySet, mutant: &Mutant, bench: &Bench<'_>) -> Fate {
    // A change reaches the tools that the policy answers for, and no mutant makes them more.
    let only: BTreeSet<&str> = base
        .slices
        .iter()
        .filter(|(_, slice)| holds(slice, &mutant.policy))
        .map(|(tool, _)| tool.as_str())
        .collect();
    let text = mutant.body.as_ref().map(ToString::to_string);
    match bench.with(&mutant.policy, text, &only) {
        Err(_) => Fate::Refused,
        Ok(set) if suite.notices(&set, &mutant.policy) => Fate::Killed,
        Ok(_) => Fate::Survived,
    }
}

fn tally(suite: &Suite, set: &PolicySet, all: &[Mutant], fates: Vec<(usize, Fate)>) -> Mutation {
    let mut mutation = Mutation {
        untried: all.len().saturating_sub(fates.len()),
        ..Mutation::default()
    };
    let mut used = vec![false; suite.equivalents.len()];
    for (index, fate) in fates {
        let Some(mutant) = all.get(index) else {
            continue;
        };
        match fate {
            Fate::Killed => mutation.killed += 1,
            Fate::Refused => mutation.refused += 1,
            Fate::Survived => {
                let explained = suite
                    .equivalents
                    .iter()
                    .position(|e| e.policy == mutant.policy && e.change == mutant.change);
                let about = set.policies.get(&mutant.policy).map(|held| &held.about);
                let mut survivor = Survivor {
                    policy: mutant.policy.clone(),
                    file: about.map(|about| about.file.clone()).unwrap_or_default(),
                    line: about.map_or(0, |about| about.line),
                    change: mutant.change.clone(),
                    reason: None,
                };
                match explained {
                    Some(at) => {
                        survivor.reason = suite.equivalents.get(at).map(|e| e.reason.clone());
                        if let Some(used) = used.get_mut(at) {
                            *used = true;
                        }
                        mutation.explained.push(survivor);
                    }
                    None => mutation.survivors.push(survivor),
                }
            }
        }
    }
    // Without all fates it is not known whether an explanation is still needed.
    if mutation.untried == 0 {
        for (explained, used) in suite.equivalents.iter().zip(used) {
            if !used {
                mutation.stale.push(format!(
                    "{}:{}: policy `{}`: `{}` is not a change that survives; remove the entry",
                    suite.file, explained.at.line, explained.policy, explained.change
                ));
            }
        }
    }
    mutation
}
