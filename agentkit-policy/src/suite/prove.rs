//! Invariants proved for every call, by compiling policies to SMT and asking cvc5.

use std::ffi::OsString;

use cedar_policy::{EntityTypeName, Policy, PolicySet as CedarPolicies, RequestEnv};
use cedar_policy_symcc::solver::LocalSolver;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicy, CompiledPolicySet, Env};
use tokio::process::Command;

use crate::decision::Question;
use crate::set::PolicySet;
use crate::slice::Slice;

use super::invariant::{Claim, Invariant, InvariantResult, Proof, assumed, condition_policy};
use super::witness::test_case;

/// Time that the solver has for one claim about one tool, in milliseconds.
const LIMIT: &str = "--tlimit-per=60000";

/// Proves each invariant for each of its tools.
pub(crate) fn prove(set: &PolicySet, file: &str, invariants: &[Invariant]) -> Vec<InvariantResult> {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return all(
                set,
                file,
                invariants,
                &Proof::Undecided {
                    why: format!("the solver cannot be talked to: {error}"),
                },
            );
        }
    };
    runtime.block_on(async {
        if let Err(why) = solver() {
            return all(set, file, invariants, &Proof::Skipped { why });
        }
        let mut results = Vec::new();
        for invariant in invariants {
            for slice in about(set, invariant) {
                let proof = match one(slice, invariant).await {
                    Ok(None) => Proof::Proved,
                    Ok(Some(env)) => test_case(set, slice, invariant, &env),
                    Err(why) => Proof::Undecided { why },
                };
                results.push(result(file, invariant, slice, proof));
            }
        }
        results
    })
}

fn about<'s>(set: &'s PolicySet, invariant: &Invariant) -> Vec<&'s Slice> {
    set.slices
        .iter()
        .filter(|(tool, _)| invariant.tools.is_empty() || invariant.tools.contains(tool))
        .map(|(_, slice)| slice)
        .collect()
}

fn all(
    set: &PolicySet,
    file: &str,
    invariants: &[Invariant],
    proof: &Proof,
) -> Vec<InvariantResult> {
    invariants
        .iter()
        .flat_map(|invariant| {
            about(set, invariant)
                .into_iter()
                .map(|slice| result(file, invariant, slice, proof.clone()))
        })
        .collect()
}

fn result(file: &str, invariant: &Invariant, slice: &Slice, proof: Proof) -> InvariantResult {
    InvariantResult {
        name: invariant.name.clone(),
        file: file.to_owned(),
        line: invariant.at.line,
        tool: slice.tool.name().to_owned(),
        proof,
    }
}

/// The solver named by `CVC5`, or `cvc5` on the search path.
fn solver() -> Result<LocalSolver, String> {
    let program = std::env::var_os("CVC5").unwrap_or_else(|| OsString::from("cvc5"));
    let mut command = Command::new(&program);
    command.args(["--lang", "smt", LIMIT]).kill_on_drop(true);
    LocalSolver::from_command(&mut command).map_err(|error| {
        format!(
            "`{}` does not start ({error}); install cvc5 (Debian: `apt-get install cvc5`) or name \
             it in the variable CVC5",
            program.to_string_lossy()
        )
    })
}

/// A call that breaks the claim, if there is one.
async fn one(slice: &Slice, invariant: &Invariant) -> Result<Option<Env>, String> {
    let question = invariant.question;
    let env = request_env(slice, question)?;
    let (Claim::Never(condition) | Claim::Always(condition)) = &invariant.claim;
    let condition = condition_policy(
        &format!("{} && ({condition})", assumed(slice, question)),
        slice,
        question,
    )?;
    let condition = compiled(
        &CedarPolicies::from_policies([condition]).map_err(|error| error.to_string())?,
        &env,
        slice,
    )?;
    let asked = &slice.asked(question).policies;
    let all = CedarPolicies::from_policies(asked.policies().cloned())
        .map_err(|error| error.to_string())?;
    let policies = compiled(&all, &env, slice)?;
    let mut compiler = CedarSymCompiler::new(solver()?).map_err(|error| error.to_string())?;
    match invariant.claim {
        Claim::Never(_) => compiler
            .check_disjoint_with_counterexample_opt(&policies, &condition)
            .await
            .map_err(|error| said(&error)),
        Claim::Always(_) => {
            let found = compiler
                .check_implies_with_counterexample_opt(&condition, &policies)
                .await
                .map_err(|error| said(&error))?;
            if found.is_none() {
                never_fail(&mut compiler, asked.policies(), &env, slice).await?;
            }
            Ok(found)
        }
    }
}

/// Cedar skips a forbid whose evaluation fails, the engine denies: what is proved of Cedar holds
/// of the engine only where no forbid can fail.
async fn never_fail(
    compiler: &mut CedarSymCompiler<LocalSolver>,
    policies: impl Iterator<Item = &'_ Policy>,
    env: &RequestEnv,
    slice: &Slice,
) -> Result<(), String> {
    for policy in policies.filter(|p| p.effect() == cedar_policy::Effect::Forbid) {
        let symbolic = CompiledPolicy::compile(policy, env, &slice.schema)
            .map_err(|error| error.to_string())?;
        if !compiler
            .check_never_errors_opt(&symbolic)
            .await
            .map_err(|error| said(&error))?
        {
            return Err(format!(
                "the forbid `{}` can fail, and a forbid that fails denies; bound what it computes",
                policy.id()
            ));
        }
    }
    Ok(())
}

fn said(error: &cedar_policy_symcc::err::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

fn compiled(
    policies: &CedarPolicies,
    env: &RequestEnv,
    slice: &Slice,
) -> Result<CompiledPolicySet, String> {
    CompiledPolicySet::compile(policies, env, &slice.schema).map_err(|error| said(&error))
}

fn request_env(slice: &Slice, question: Question) -> Result<RequestEnv, String> {
    let kind = |name: &str| -> Result<EntityTypeName, String> {
        name.parse()
            .map_err(|error: cedar_policy::ParseErrors| error.to_string())
    };
    Ok(RequestEnv::new(
        kind("User")?,
        slice.asked(question).action.clone(),
        kind("Agent")?,
    ))
}
