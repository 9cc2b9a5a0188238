//! Values held against a JSON Schema, with problems that a model can act on: every one with its
//! path, what was expected and found, and which values are allowed.

use std::{fmt::Write as _, sync::OnceLock};

use jsonschema::{
    JsonType, PatternOptions, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use super::{ArgumentProblem, ToolSpec, settle::kind};

/// The most problems that are told at once.
const MOST: usize = 16;

/// The longest text of a value that an error repeats, in characters.
const SHOWN: usize = 160;

/// A schema that values are held against.
pub(crate) struct SchemaValidator(Validator);

impl SchemaValidator {
    /// Compiles the schema.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        compile(schema).map(Self)
    }

    /// Holds `value` against it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the value.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Vec<ArgumentProblem>> {
        let problems = problems(&self.0, value);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// The schemas of a tool, compiled when they are first needed.
#[derive(Default)]
pub(super) struct Checks {
    input: OnceLock<Result<Validator, String>>,
    effective: OnceLock<Result<Validator, String>>,
    resume: OnceLock<Result<Validator, String>>,
}

impl Checks {
    /// What models may send.
    pub(super) fn input(&self, spec: &ToolSpec) -> Result<&Validator, ArgumentProblem> {
        ready(&self.input, &spec.input_schema)
    }

    /// What the arguments are once they are settled.
    pub(super) fn effective(&self, spec: &ToolSpec) -> Result<&Validator, ArgumentProblem> {
        ready(&self.effective, &spec.policy_schema)
    }

    /// What answers a question; nothing where the tool asks none.
    pub(super) fn resume(&self, spec: &ToolSpec) -> Result<Option<&Validator>, ArgumentProblem> {
        let schema = spec.resume_schema.as_ref();
        schema.map(|schema| ready(&self.resume, schema)).transpose()
    }
}

fn ready<'c>(
    cell: &'c OnceLock<Result<Validator, String>>,
    schema: &Value,
) -> Result<&'c Validator, ArgumentProblem> {
    cell.get_or_init(|| compile(schema))
        .as_ref()
        .map_err(|why| {
            ArgumentProblem::new(
                "$",
                format!(
                    "the schema of the tool is no JSON Schema ({why}); this is a fault of the tool"
                ),
            )
        })
}

/// Compiles a schema. Patterns are matched in linear time, and nothing is fetched.
pub(super) fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.to_string())
}

/// Everything that is wrong with `value`.
pub(super) fn problems(validator: &Validator, value: &Value) -> Vec<ArgumentProblem> {
    let mut problems = Vec::new();
    for error in validator.iter_errors(value) {
        for problem in explain(&error, value) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    problems.truncate(MOST);
    problems
}

/// What is wrong with a value that its Rust type takes: bounds, lengths, patterns. Whether the
/// value has the right form is the type's word, since a schema may say less than a type knows.
pub(super) fn violations(validator: &Validator, value: &Value) -> Vec<ArgumentProblem> {
    let mut problems = Vec::new();
    for error in validator.iter_errors(value) {
        for leaf in constraints(&error) {
            problems.extend(explain(leaf, value));
        }
    }
    problems.truncate(MOST);
    problems
}

/// The constraints that are violated, if nothing else is wrong.
fn constraints<'e, 'i>(error: &'e ValidationError<'i>) -> Vec<&'e ValidationError<'i>> {
    match error.kind() {
        Kind::Minimum { .. }
        | Kind::Maximum { .. }
        | Kind::ExclusiveMinimum { .. }
        | Kind::ExclusiveMaximum { .. }
        | Kind::MultipleOf { .. }
        | Kind::MinLength { .. }
        | Kind::MaxLength { .. }
        | Kind::MinItems { .. }
        | Kind::MaxItems { .. }
        | Kind::MinProperties { .. }
        | Kind::MaxProperties { .. }
        | Kind::UniqueItems
        | Kind::Contains
        | Kind::Pattern { .. }
        | Kind::PropertyNames { .. }
        // A pattern that cannot be matched is not met.
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. } => vec![error],
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => context
            .iter()
            .find(|branch| {
                !branch.is_empty() && branch.iter().all(|error| !constraints(error).is_empty())
            })
            // Named by the alternatives as a whole: what lies in a branch has no lifetime of ours.
            .map_or_else(Vec::new, |_| vec![error]),
        _ => Vec::new(),
    }
}

/// An error in a model's terms.
fn explain(error: &ValidationError<'_>, root: &Value) -> Vec<ArgumentProblem> {
    let path = dotted(root, error.instance_path().as_str());
    let instance = error.instance();
    let expected = match error.kind() {
        Kind::Required { property } => {
            let key = property.as_str().unwrap_or_default();
            let mut problem = ArgumentProblem::new(format!("{path}.{key}"), "required and missing");
            problem.expected = Some("a value".to_owned());
            problem.found = Some("nothing".to_owned());
            return vec![problem];
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            return unexpected
                .iter()
                .map(|key| {
                    ArgumentProblem::new(format!("{path}.{key}"), "unknown key; leave it out")
                })
                .collect();
        }
        Kind::AnyOf { context }
        | Kind::OneOfNotValid { context }
        | Kind::OneOfMultipleValid { context } => {
            return alternatives(&path, instance, context, root);
        }
        Kind::Enum { options } => {
            let allowed = options.as_array().cloned().unwrap_or_default();
            return vec![one_of(&path, &allowed, instance)];
        }
        Kind::Constant { expected_value } => {
            return vec![one_of(&path, &[expected_value.as_ref().clone()], instance)];
        }
        Kind::Type { kind } => types(kind),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("exactly {limit} items"),
        Kind::UniqueItems => "items that differ from each other".to_owned(),
        Kind::Pattern { pattern } => format!("a text that matches `{pattern}`"),
        Kind::Format { format } => format!("a text in the format `{format}`"),
        _ => {
            return vec![ArgumentProblem::new(path, shorten(&error.to_string()))];
        }
    };
    vec![ArgumentProblem::mismatch(path, expected, shown(instance))]
}

/// None of several forms fits: the one that is most likely meant is explained.
fn alternatives(
    path: &str,
    instance: &Value,
    branches: &[Vec<ValidationError<'static>>],
    root: &Value,
) -> Vec<ArgumentProblem> {
    let explained: Vec<Vec<ArgumentProblem>> = branches
        .iter()
        .map(|branch| {
            branch
                .iter()
                .flat_map(|error| explain(error, root))
                .collect()
        })
        .collect();
    // Every form is a list of values, or every form fails at the same tag: all values are allowed.
    let tags = explained.iter().map(|problems| {
        problems
            .iter()
            .find(|problem| !problem.allowed.is_empty())
            .map(|problem| (problem.path.as_str(), problem))
    });
    if let Some(tags) = tags.collect::<Option<Vec<_>>>()
        && let Some((tag, first)) = tags.first()
        && tags.iter().all(|(other, _)| other == tag)
    {
        let allowed: Vec<String> = tags
            .iter()
            .flat_map(|(_, one)| one.allowed.clone())
            .collect();
        let found = first.found.clone().unwrap_or_default();
        return vec![listed(tag, allowed, found)];
    }
    // Forms of another kind altogether, and those whose tag says otherwise, were not meant.
    let meant: Vec<&Vec<ArgumentProblem>> = explained
        .iter()
        .zip(branches)
        .filter(|(problems, branch)| {
            let wrong_kind = branch.iter().any(|error| {
                matches!(error.kind(), Kind::Type { .. })
                    && dotted(root, error.instance_path().as_str()) == path
            });
            !wrong_kind && problems.iter().all(|problem| problem.allowed.is_empty())
        })
        .map(|(problems, _)| problems)
        .collect();
    if let [only] = meant.as_slice() {
        return (*only).clone();
    }
    let expected: Vec<String> = explained
        .iter()
        .flatten()
        .filter(|problem| problem.path == path)
        .filter_map(|problem| problem.expected.clone())
        .collect();
    let expected = if expected.is_empty() {
        "one of the forms in the schema".to_owned()
    } else {
        expected.join(" or ")
    };
    vec![ArgumentProblem::mismatch(path, expected, shown(instance))]
}

fn one_of(path: &str, allowed: &[Value], found: &Value) -> ArgumentProblem {
    let allowed = allowed.iter().map(ToString::to_string).collect();
    listed(path, allowed, shown(found))
}

fn listed(path: &str, allowed: Vec<String>, found: String) -> ArgumentProblem {
    let names: Vec<String> = allowed.iter().map(|value| format!("`{value}`")).collect();
    let expected = match names.as_slice() {
        [only] => only.clone(),
        _ => format!("one of {}", names.join(", ")),
    };
    let mut problem = ArgumentProblem::mismatch(path, shorten(&expected), found);
    problem.allowed = allowed;
    problem
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => type_name(*one).to_owned(),
        TypeKind::Multiple(several) => {
            let names: Vec<_> = several.iter().map(type_name).collect();
            names.join(" or ")
        }
    }
}

const fn type_name(of: JsonType) -> &'static str {
    match of {
        JsonType::Null => "null",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    }
}

/// A value as errors repeat it.
fn shown(value: &Value) -> String {
    let kind = kind(value);
    match value {
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let kind = kind.split_once(' ').map_or(kind, |(_, kind)| kind);
            shorten(&format!("{kind} `{value}`"))
        }
        _ => kind.to_owned(),
    }
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Turns a JSON pointer (RFC 6901) into a path such as `$.items[2].name`.
pub(super) fn dotted(root: &Value, pointer: &str) -> String {
    let mut path = String::from("$");
    let mut value = Some(root);
    // Writing to a `String` cannot fail.
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        if let Some(Value::Array(items)) = value {
            let _ = write!(path, "[{key}]");
            value = key.parse().ok().and_then(|index: usize| items.get(index));
        } else {
            let _ = write!(path, ".{key}");
            value = value.and_then(|value| value.get(&key));
        }
    }
    path
}
