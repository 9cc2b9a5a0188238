//! What is wrong with the policies of one tool under its schema.

use cedar_policy::{
    PolicySet as CedarPolicies, Schema, ValidationMode, ValidationWarning, Validator,
};
use miette::Diagnostic;

use crate::load_error::Finding;
use crate::policy::{LoadedPolicy, lower};
use crate::session;
use crate::slice::{Cutting, Remarks};
use crate::tool::Tool;

/// Facts that a policy reads and that are not there for this tool.
pub(crate) fn unreadable_facts(
    policy: &LoadedPolicy,
    tool: &Tool,
    cutting: &Cutting<'_>,
    findings: &mut Vec<Finding>,
) {
    let settings = cutting.settings;
    let everything = [String::from("this")];
    let whole = policy.mentions.everything;
    let declared = settings.facts.iter().map(|fact| &fact.name);
    let names: Vec<&String> = if whole {
        everything.iter().chain(declared).collect()
    } else {
        policy.mentions.names.iter().collect()
    };
    for name in names {
        // Who handles the session as a whole sees what there is, and must be handed all of it.
        let Some(finding) = session::unreadable(name, tool, settings)
            .filter(|finding| !whole || finding.message.contains("not computed"))
        else {
            continue;
        };
        let last = name.rsplit('.').next().unwrap_or(name);
        let place = cutting.statements.get(policy.id()).map(|statement| {
            let offset = statement.text.find(last).unwrap_or(0);
            statement.place(offset)
        });
        let (line, column) = place.unzip();
        let finding = Finding {
            line: line.or(Some(policy.about.line)),
            length: last.len(),
            column: column.or(Some(policy.column)),
            message: finding.message,
            suggestion: finding.suggestion,
            ..policy.finding("").tool_named(tool.name())
        };
        let same =
            |known: &Finding| known.policy == finding.policy && known.message == finding.message;
        if !findings.iter().any(same) {
            findings.push(finding);
        }
    }
}

/// Validates the policies of a tool strictly, and that they reach no further into entities than
/// there are any.
pub(crate) fn validate(
    tool: &Tool,
    schema: &Schema,
    members: &[&LoadedPolicy],
    cutting: &Cutting<'_>,
    remarks: &mut Remarks,
) {
    if members.is_empty() {
        return;
    }
    let set = match CedarPolicies::from_policies(members.iter().map(|p| p.policy.clone())) {
        Ok(set) => set,
        Err(error) => {
            let finding = Finding::about(lower(&error.to_string())).tool_named(tool.name());
            remarks.findings.push(finding);
            return;
        }
    };
    let level = 1 + tool.input.level() + cutting.settings.extension.level();
    let result =
        Validator::new(schema.clone()).validate_with_level(&set, ValidationMode::Strict, level);
    let mut errors: Vec<_> = result.validation_errors().collect();
    // Cedar reports them in no particular order.
    errors.sort_by_cached_key(ToString::to_string);
    for error in errors {
        let id = error.policy_id().to_string();
        let finding = placed(error, &id, cutting).tool_named(tool.name());
        // A policy fails alike for each question and each tool of a group; once is enough.
        let same = |known: &Finding| {
            known.policy == finding.policy
                && (known.line, known.column) == (finding.line, finding.column)
        };
        if !remarks.findings.iter().any(same) {
            remarks.findings.push(finding);
        }
    }
    if !result.validation_passed() && remarks.findings.is_empty() {
        let finding = Finding::about("validation failed").tool_named(tool.name());
        remarks.findings.push(finding);
    }
    for policy in members {
        remarks
            .impossible
            .entry(policy.id().to_owned())
            .or_default()
            .0 += 1;
    }
    for warning in result.validation_warnings() {
        let id = warning.policy_id().to_string();
        if matches!(warning, ValidationWarning::ImpossiblePolicy(_)) {
            remarks.impossible.entry(id).or_default().1 += 1;
            continue;
        }
        let finding = placed(warning, &id, cutting);
        if !remarks.warnings.contains(&finding) {
            remarks.warnings.push(finding);
        }
    }
}

/// What Cedar says about a policy, at its place in the file.
fn placed(said: &impl Diagnostic, id: &str, cutting: &Cutting<'_>) -> Finding {
    let label = said.labels().and_then(|mut labels| labels.next());
    let offset = label.as_ref().map_or(0, miette::LabeledSpan::offset);
    let text = said.to_string();
    let message = text
        .strip_prefix(&format!("for policy `{id}`"))
        .and_then(|rest| rest.strip_prefix(", ").or_else(|| rest.strip_prefix(": ")))
        .unwrap_or(&text);
    let place = cutting.statements.get(id);
    let (line, column) = place.map(|statement| statement.place(offset)).unzip();
    let finding = Finding {
        file: place.map(|statement| statement.source.name.clone()),
        line,
        column,
        length: label.map_or(0, |label| label.len()),
        policy: Some(id.to_owned()),
        ..Finding::about(lower(message))
    };
    match said.help() {
        Some(help) => finding.suggest(help.to_string()),
        None => finding,
    }
}
