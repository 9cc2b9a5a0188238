//! Questions as `cedar run-tests` writes them: a request, entities, and the expected decision.

use std::collections::BTreeSet;
use std::path::Path;

use cedar_policy::{Context, Entities, Entity, EntityUid, Request};
use serde::Deserialize;
use serde_json::Value;

use crate::ask::answer;
use crate::decision::Question;
use crate::heard::{Heard, Listener};
use crate::load_error::{Finding, LoadError};
use crate::set::{PolicySet, on_stack};
use crate::slice::Slice;
use crate::tool::nearest;

use super::judge::{CaseResult, Failure};
use super::read::about_file;

/// One test of Cedar's own command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionCase {
    #[serde(default)]
    name: Option<String>,
    request: RequestJson,
    entities: Value,
    decision: Expected,
    /// Policies that must be among the determining ones, as Cedar's command line reads it.
    reason: Vec<String>,
    num_errors: usize,
    #[serde(skip)]
    file: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestJson {
    principal: String,
    action: String,
    resource: String,
    #[serde(default = "empty")]
    context: Value,
}

impl QuestionCase {
    /// Whether a set holds the tool that the question is about.
    pub(crate) fn is_about(&self, set: &PolicySet) -> bool {
        let action: Option<EntityUid> = self.request.action.parse().ok();
        action.is_some_and(|action| asked_about(set, action.id().unescaped()).is_ok())
    }
}

fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Allow,
    Deny,
}

impl Expected {
    fn text(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// Reads a file of `cedar run-tests`.
pub(crate) fn read(path: &Path, text: &str) -> Result<Vec<QuestionCase>, LoadError> {
    let fail = |finding: Finding| LoadError::new(vec![finding]);
    let items: Vec<Value> = serde_json::from_str(text).map_err(|error| {
        fail(about_file(
            path,
            format!("the tests are not a JSON list: {error}"),
            "write them as for `cedar run-tests`",
        ))
    })?;
    let mut cases = Vec::new();
    let mut findings = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        match serde_json::from_value::<QuestionCase>(item) {
            Ok(mut case) => {
                let name = case.name.take();
                case.name = Some(name.unwrap_or_else(|| format!("test {}", index + 1)));
                case.file = path.display().to_string();
                if let Value::String(file) = &case.entities {
                    match entities_file(path, file) {
                        Ok(entities) => case.entities = entities,
                        Err(finding) => findings.push(*finding),
                    }
                }
                cases.push(case);
            }
            Err(error) => findings.push(about_file(
                path,
                format!("test {}: {error}", index + 1),
                "a test has request, entities, decision, reason and num_errors",
            )),
        }
    }
    if findings.is_empty() {
        Ok(cases)
    } else {
        Err(LoadError::new(findings))
    }
}

fn entities_file(tests: &Path, file: &str) -> Result<Value, Box<Finding>> {
    let path = tests.parent().unwrap_or(Path::new("")).join(file);
    let fail =
        |message: String| Box::new(about_file(&path, message, "name a JSON file of entities"));
    let text = std::fs::read_to_string(&path)
        .map_err(|error| fail(format!("the entities cannot be read: {error}")))?;
    serde_json::from_str(&text).map_err(|error| fail(format!("the entities are not JSON: {error}")))
}

/// Puts the question and compares the answer.
pub(crate) fn run(set: &PolicySet, case: &QuestionCase) -> CaseResult {
    let failures = match ask(set, case) {
        Ok(failures) => failures,
        Err(message) => vec![Failure {
            about: "request".to_owned(),
            expected: case.decision.text().to_owned(),
            found: message,
        }],
    };
    CaseResult {
        name: case.name.clone().unwrap_or_default(),
        file: case.file.clone(),
        line: 0,
        why: None,
        failures,
    }
}

fn ask(set: &PolicySet, case: &QuestionCase) -> Result<Vec<Failure>, String> {
    let uid = |name: &str, text: &str| -> Result<EntityUid, String> {
        text.parse()
            .map_err(|error| format!("the {name} `{text}` is not an entity: {error}"))
    };
    let principal = uid("principal", &case.request.principal)?;
    let action = uid("action", &case.request.action)?;
    let resource = uid("resource", &case.request.resource)?;
    let (slice, question) = asked_about(set, action.id().unescaped())?;
    on_stack(slice, || {
        let context =
            Context::from_json_value(case.request.context.clone(), Some((&slice.schema, &action)))
                .map_err(|error| format!("the context does not fit the schema: {error}"))?;
        let request = Request::new(
            principal.clone(),
            action,
            resource.clone(),
            context,
            Some(&slice.schema),
        )
        .map_err(|error| format!("the request does not fit the schema: {error}"))?;
        let entities = Entities::from_json_value(case.entities.clone(), Some(&slice.schema))
            .map_err(|error| format!("the entities do not fit the schema: {error}"))?;
        // Cedar's command line reads whoever is missing as someone without attributes.
        let missing: Vec<Entity> = [principal, resource]
            .into_iter()
            .filter(|uid| entities.get(uid).is_none())
            .map(Entity::with_uid)
            .collect();
        let entities = entities
            .add_entities(missing, Some(&slice.schema))
            .map_err(|error| error.to_string())?;
        let policies = &slice.asked(question).policies;
        let answer = answer(question, policies, &request, &entities);
        let failures = compare(case, answer.permitted, &answer.reasons, answer.errors.len());
        if let Some(listener) = &slice.listener {
            hear(listener, slice, question, request, entities, &answer);
        }
        Ok(failures)
    })
}

fn hear(
    listener: &Listener,
    slice: &Slice,
    question: Question,
    request: Request,
    entities: Entities,
    answer: &crate::ask::Answer,
) {
    listener.hear(Heard {
        tool: slice.tool.name().to_owned(),
        question,
        request,
        entities,
        permitted: answer.permitted,
        forbidden: answer.forbidden,
        reasons: answer.reasons.clone(),
    });
}

fn compare(
    case: &QuestionCase,
    permitted: bool,
    reasons: &[String],
    errors: usize,
) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut differ = |about: &str, expected: String, found: String| {
        failures.push(Failure {
            about: about.to_owned(),
            expected,
            found,
        });
    };
    let found = if permitted {
        Expected::Allow
    } else {
        Expected::Deny
    };
    if found != case.decision {
        differ(
            "decision",
            case.decision.text().to_owned(),
            found.text().to_owned(),
        );
    }
    let missing: BTreeSet<&str> = case
        .reason
        .iter()
        .filter(|id| !reasons.contains(id))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        differ(
            "reason",
            format!("{:?}", case.reason),
            format!("{reasons:?}"),
        );
    }
    if errors != case.num_errors {
        differ(
            "num_errors",
            case.num_errors.to_string(),
            errors.to_string(),
        );
    }
    failures
}

/// The tool and the question that an action stands for.
pub(crate) fn asked_about<'s>(
    set: &'s PolicySet,
    action: &str,
) -> Result<(&'s Slice, Question), String> {
    for (tool, slice) in &set.slices {
        for question in Question::ALL {
            if question.action(tool) == action {
                return Ok((slice, question));
            }
        }
    }
    let names: Vec<String> = set
        .slices
        .keys()
        .flat_map(|tool| Question::ALL.map(|question| question.action(tool)))
        .collect();
    Err(match nearest(action, names.iter().map(String::as_str)) {
        Some(near) => format!(
            "`Action::\"{action}\"` names no declared tool, did you mean `Action::\"{near}\"`?"
        ),
        None => format!("`Action::\"{action}\"` names no declared tool"),
    })
}
