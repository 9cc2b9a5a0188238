//! From a stranger's JSON to effective arguments, without losing anything on the way.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::Segment;

use super::{
    ArgumentError, ArgumentProblem, ToolSpec,
    against_schema::{self, Checks},
    schema,
    unused::{self, Loss, Step},
};
use crate::call::{Canonical, JsonError, Limits, decode_value};

/// Settles the JSON text of a model as the arguments of a tool.
pub(super) fn arguments<T: Serialize + DeserializeOwned>(
    raw: &str,
    spec: &ToolSpec,
) -> Result<Canonical, ArgumentError> {
    checked_arguments::<T>(raw, spec, &Checks::default())
}

/// Settles arguments, with schemas that are compiled once for all calls.
pub(super) fn checked_arguments<T: Serialize + DeserializeOwned>(
    raw: &str,
    spec: &ToolSpec,
    checks: &Checks,
) -> Result<Canonical, ArgumentError> {
    let subject = arguments_of(&spec.name);
    let value = object(raw).map_err(|problem| ArgumentError::one(&subject, problem))?;
    let names = schema::property_names(&spec.input_schema);
    settle::<T>(&value, &names)
        .map_err(|problems| match checks.input(spec) {
            Ok(schema) => with_more(problems, against_schema::problems(schema, &value)),
            Err(_) => problems,
        })
        .and_then(|canonical| {
            let schema = checks.effective(spec).map_err(|problem| vec![problem])?;
            bounded(canonical, schema)
        })
        .map_err(|problems| ArgumentError::new(subject, problems))
}

/// Settles the answer to a question of a tool, and holds it against the schema of answers.
pub(super) fn checked_answer<T: Serialize + DeserializeOwned>(
    raw: &Value,
    spec: &ToolSpec,
    checks: &Checks,
) -> Result<Canonical, ArgumentError> {
    let subject = || answer_to(&spec.name);
    let schema = checks
        .resume(spec)
        .map_err(|problem| ArgumentError::one(subject(), problem))?;
    let answer = answer::<T>(raw, &spec.name).map_err(|error| match schema {
        Some(schema) => {
            let more = against_schema::problems(schema, raw);
            ArgumentError::new(subject(), with_more(error.problems().to_vec(), more))
        }
        None => error,
    })?;
    match schema {
        Some(schema) => {
            bounded(answer, schema).map_err(|problems| ArgumentError::new(subject(), problems))
        }
        None => Ok(answer),
    }
}

/// What the type takes must also keep to the bounds that the schema shows to the model.
fn bounded(
    canonical: Canonical,
    schema: &jsonschema::Validator,
) -> Result<Canonical, Vec<ArgumentProblem>> {
    let value = canonical
        .to_value()
        .map_err(|error| vec![json_problem(&error)])?;
    let violations = against_schema::violations(schema, &value);
    if violations.is_empty() {
        Ok(canonical)
    } else {
        Err(violations)
    }
}

/// The first problems, which come from the type, and those of the schema that are about other
/// parts of the value: a model that learns them all at once need not try again for each.
fn with_more(
    mut problems: Vec<ArgumentProblem>,
    more: Vec<ArgumentProblem>,
) -> Vec<ArgumentProblem> {
    let related = |a: &str, b: &str| {
        let inside = |outer: &str, inner: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        a != "$" && b != "$" && (inside(a, b) || inside(b, a)) || a == b
    };
    let first: Vec<String> = problems
        .iter()
        .map(|problem| problem.path.clone())
        .collect();
    problems.extend(
        more.into_iter()
            .filter(|problem| !first.iter().any(|path| related(path, &problem.path))),
    );
    problems
}

/// Settles the answer to a question of a tool.
pub(super) fn answer<T: Serialize + DeserializeOwned>(
    raw: &Value,
    tool: &str,
) -> Result<Canonical, ArgumentError> {
    let subject = answer_to(tool);
    // Bounds and numbers are checked before the type is tried.
    Canonical::of(raw)
        .map_err(|error| vec![ArgumentProblem::new("$", error.to_string())])
        .and_then(|_| settle::<T>(raw, &[]))
        .map_err(|problems| ArgumentError::new(subject, problems))
}

/// How errors about the arguments of a tool start.
pub(super) fn arguments_of(tool: &str) -> String {
    format!("the arguments of `{tool}` do not fit")
}

/// How errors about the answer to a tool's question start.
pub(super) fn answer_to(tool: &str) -> String {
    format!("the answer to the question of `{tool}` does not fit")
}

/// The JSON object in a model's text. Models send an empty text to tools without arguments.
pub(super) fn object(raw: &str) -> Result<Value, ArgumentProblem> {
    let text = if raw.trim().is_empty() { "{}" } else { raw };
    let value = decode_value(text, Limits::default()).map_err(|error| json_problem(&error))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(ArgumentProblem::mismatch(
            "$",
            "a JSON object",
            kind(&value),
        ))
    }
}

fn json_problem(error: &JsonError) -> ArgumentProblem {
    // The text of the error names its path itself.
    ArgumentProblem::new("$", error.to_string())
}

fn settle<T: Serialize + DeserializeOwned>(
    raw: &Value,
    names: &[&str],
) -> Result<Canonical, Vec<ArgumentProblem>> {
    let mut ignored = Vec::new();
    let typed: T = decode(raw, &mut ignored).map_err(|problem| vec![problem])?;
    let canonical = Canonical::of(&typed)
        .map_err(|error| vec![ArgumentProblem::new("$", error.to_string())])?;
    let effective = canonical
        .to_value()
        .map_err(|error| vec![json_problem(&error)])?;

    let again = |value: &Value| {
        let typed: T = decode(value, &mut Vec::new()).ok()?;
        Canonical::of(&typed).ok()
    };
    let losses = unused::losses(raw, &effective, &canonical, &again);
    let mut problems: Vec<_> = losses
        .iter()
        .map(|loss| loss_problem(loss, names))
        .collect();
    if problems.is_empty() {
        problems.extend(ignored.iter().map(|path| unknown_key(path, names)));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if again(&effective).as_ref() == Some(&canonical) {
        Ok(canonical)
    } else {
        Err(vec![ArgumentProblem::new(
            "$",
            "the type does not survive being serialised and decoded again, so what is approved \
             would not be what runs; this is a fault of the tool and not of the call",
        )])
    }
}

fn decode<T: DeserializeOwned>(
    value: &Value,
    ignored: &mut Vec<Vec<Step>>,
) -> Result<T, ArgumentProblem> {
    let mut track = serde_path_to_error::Track::new();
    let deserializer = serde_path_to_error::Deserializer::new(value, &mut track);
    serde_ignored::deserialize(deserializer, |path| ignored.push(steps(&path)))
        .map_err(|error: serde_json::Error| type_problem(&track.path(), &error.to_string()))
}

fn steps(path: &serde_ignored::Path<'_>) -> Vec<Step> {
    use serde_ignored::Path;
    match path {
        Path::Root => Vec::new(),
        Path::Seq { parent, index } => {
            let mut steps = steps(parent);
            steps.push(Step::Index(*index));
            steps
        }
        Path::Map { parent, key } => {
            let mut steps = steps(parent);
            steps.push(Step::Key(key.clone()));
            steps
        }
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => steps(parent),
    }
}

fn loss_problem(loss: &Loss, names: &[&str]) -> ArgumentProblem {
    match loss {
        Loss::Unknown(path) => unknown_key(path, names),
        Loss::Dropped(path) => ArgumentProblem::new(
            unused::render(path),
            "the tool's type drops this value; leave the key out",
        ),
        Loss::Shape {
            path,
            expected,
            found,
        } => ArgumentProblem::mismatch(unused::render(path), expected, *found),
        Loss::Unchecked { keys, limit } => ArgumentProblem::new(
            "$",
            format!(
                "{keys} keys are not known to the tool under these names; at most {limit} such \
                 keys can be checked"
            ),
        ),
    }
}

fn unknown_key(path: &[Step], names: &[&str]) -> ArgumentProblem {
    let mut problem = ArgumentProblem::new(unused::render(path), "unknown key; leave it out");
    if path.len() == 1 {
        let known = if names.is_empty() {
            "there are no keys".to_owned()
        } else {
            format!("the keys are {}", list(names))
        };
        problem.message = format!("unknown key; {known}");
        problem.expected = Some(known);
    }
    problem
}

fn list(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The longest text of a value that an error repeats, in characters.
const SHOWN: usize = 160;

/// Takes serde's sentence apart.
fn type_problem(path: &serde_path_to_error::Path, message: &str) -> ArgumentProblem {
    let mut steps: Vec<Step> = path
        .iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Enum { variant } => Some(Step::Key(variant.clone())),
            Segment::Unknown => None,
        })
        .collect();
    let missing = message
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'));
    if let Some(field) = missing {
        steps.push(Step::Key(field.to_owned()));
        let mut problem = ArgumentProblem::new(unused::render(&steps), "required and missing");
        problem.expected = Some("a value".to_owned());
        problem.found = Some("nothing".to_owned());
        return problem;
    }
    let path = unused::render(&steps);
    // The last `, expected` is serde's own; one before it may be part of the value.
    if let Some((found, expected)) = message.rsplit_once(", expected ") {
        let found = ["invalid type: ", "invalid value: "]
            .iter()
            .find_map(|prefix| found.strip_prefix(prefix))
            .unwrap_or(found);
        return ArgumentProblem::mismatch(path, shorten(expected), shorten(found));
    }
    ArgumentProblem::new(path, shorten(message))
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// What a JSON value is, in a model's terms.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
