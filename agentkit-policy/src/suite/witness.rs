//! From the solver's counterexample to a test case that can be put into a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cedar_policy::{Entities, EntityUid, EvalResult, Expression, Request, eval_expression};
use cedar_policy_symcc::Env;
use serde_json::{Map, Number, Value, json};

use crate::attribute::AttributeValue;
use crate::call::{Approvals, User};
use crate::decision::{Outcome, Question};

use crate::set::{PolicySet, on_stack};
use crate::shape::{Field, RecordShape, Shape, datetime_text, quoted};
use crate::slice::Slice;

use super::case::{Approver, By, Case};
use super::document::Place;
use super::facts::untouched;
use super::invariant::{Claim, Invariant, Proof};
use super::judge::failures;
use super::report::yaml_text;

/// The refutation with a test case that fails.
pub(crate) fn test_case(set: &PolicySet, slice: &Slice, invariant: &Invariant, env: &Env) -> Proof {
    let example = on_stack(slice, || {
        case(set, slice, invariant, env)
            .filter(|case| !failures(set, case).is_empty())
            .map_or_else(|| cedar_test(invariant, env), |case| as_yaml(&case))
    });
    Proof::Refuted { example }
}

/// The counterexample as a call, if its context is one that a call can have.
fn case(set: &PolicySet, slice: &Slice, invariant: &Invariant, env: &Env) -> Option<Case> {
    let look = Look {
        request: &env.request,
        entities: &env.entities,
    };
    let principal = env.request.principal()?;
    let input = look.value("context.input")?;
    let now = look.micros("context.system.now")?;
    let requester = match invariant.question {
        Question::Approve => look.uid("context.requester")?,
        _ => principal.clone(),
    };
    let mut approvals = Approvals {
        max_age: std::time::Duration::MAX,
        ..Approvals::requested_at(now)
    };
    if invariant.question == Question::Approve {
        approvals.requested_at = look.micros("context.approvals.requested_at")?;
        let EvalResult::Set(approvers) = look.value("context.approvals.approvers")? else {
            return None;
        };
        for approver in approvers.iter() {
            let EvalResult::EntityUid(uid) = approver else {
                return None;
            };
            approvals.approvers.push(look.user(set, uid));
        }
    }
    let run = look.text("context.run.id")?;
    let agent = env.request.resource()?.id().unescaped().to_owned();
    if look.value("context has app") == Some(EvalResult::Bool(true)) {
        return None;
    }
    let mut session = untouched(&set.settings, &run, &agent, now);
    for field in &slice.asked(invariant.question).session {
        let path = field
            .name
            .split('.')
            .map(|part| format!("[{}]", quoted(part)));
        let path = format!("context.session{}", path.collect::<String>());
        match look.value(&path).as_ref().and_then(attribute) {
            Some(value) => session.insert(&field.name, value),
            // Whether an optional one is absent cannot be written where it is present by itself.
            None if field.optional => {}
            None => return None,
        }
    }
    let mut derived = BTreeMap::new();
    for name in slice.tool.declaration.derived.keys() {
        let path = format!("context.derived[{}]", quoted(name));
        derived.insert(name.clone(), attribute(&look.value(&path)?)?);
    }
    let mut case = Case {
        name: invariant.name.clone(),
        at: Place::default(),
        tool: slice.tool.name().to_owned(),
        arguments: json_of(&slice.tool.input, &input)?,
        user: look.user(set, &requester),
        agent,
        run,
        session,
        derived: (!derived.is_empty()).then_some(derived),
        provided: None,
        step: u32::try_from(look.long("context.run.step")?).ok()?,
        now,
        approvals,
        outcome: None,
        release: None,
        approvers: Vec::new(),
        errors: Vec::new(),
    };
    match (&invariant.claim, invariant.question) {
        (Claim::Never(_), Question::Unattended | Question::Approved) => {
            case.outcome = Some((Outcome::Deny, By::Any));
        }
        (Claim::Always(_), Question::Unattended) => {
            case.outcome = Some((Outcome::Allow, By::Any));
        }
        (Claim::Always(_), Question::Approved) => {
            let quorum = u32::try_from(look.long("context.approvals.count")?).ok()?;
            case.outcome = Some((Outcome::RequireApproval { quorum }, By::Any));
        }
        (claim, Question::Approve) => case.approvers.push(Approver {
            user: look.user(set, principal),
            may: matches!(claim, Claim::Always(_)),
            by: By::Any,
        }),
    }
    Some(case)
}

struct Look<'a> {
    request: &'a Request,
    entities: &'a Entities,
}

impl Look<'_> {
    fn value(&self, expression: &str) -> Option<EvalResult> {
        let expression: Expression = expression.parse().ok()?;
        eval_expression(self.request, self.entities, &expression).ok()
    }

    fn long(&self, expression: &str) -> Option<i64> {
        match self.value(expression)? {
            EvalResult::Long(value) => Some(value),
            _ => None,
        }
    }

    fn text(&self, expression: &str) -> Option<String> {
        match self.value(expression)? {
            EvalResult::String(value) => Some(value),
            _ => None,
        }
    }

    fn uid(&self, expression: &str) -> Option<EntityUid> {
        match self.value(expression)? {
            EvalResult::EntityUid(value) => Some(value),
            _ => None,
        }
    }

    fn micros(&self, expression: &str) -> Option<i64> {
        let since =
            format!("{expression}.durationSince(datetime(\"1970-01-01\")).toMilliseconds()");
        self.long(&since)?.checked_mul(1000)
    }

    fn user(&self, set: &PolicySet, uid: &EntityUid) -> User {
        let mut user = User::new(uid.id().unescaped());
        for ancestor in self.entities.ancestors(uid).into_iter().flatten() {
            if ancestor.type_name().to_string() == "Role" {
                user = user.role(ancestor.id().unescaped());
            }
        }
        let entity = self.entities.get(uid);
        for name in set.settings.user_attributes.keys() {
            if let Some(Ok(value)) = entity.and_then(|entity| entity.attr(name))
                && let Some(value) = attribute(&value)
            {
                user.attributes.insert(name.clone(), value);
            }
        }
        user
    }
}

fn attribute(value: &EvalResult) -> Option<AttributeValue> {
    Some(match value {
        EvalResult::Bool(value) => AttributeValue::Bool(*value),
        EvalResult::Long(value) => AttributeValue::Long(*value),
        EvalResult::String(value) => AttributeValue::String(value.clone()),
        EvalResult::ExtensionValue(text) => {
            let (_, inside) = text.split_once("(\"")?;
            AttributeValue::String(inside.strip_suffix("\")")?.to_owned())
        }
        EvalResult::Set(items) if matches!(items.iter().next(), Some(EvalResult::Long(_))) => {
            AttributeValue::Longs(
                items
                    .iter()
                    .filter_map(|item| match item {
                        EvalResult::Long(value) => Some(*value),
                        _ => None,
                    })
                    .collect(),
            )
        }
        EvalResult::Set(items) => AttributeValue::Strings(
            items
                .iter()
                .filter_map(|item| match item {
                    EvalResult::String(text) => Some(text.clone()),
                    _ => None,
                })
                .collect(),
        ),
        _ => return None,
    })
}

/// The argument that is mapped to a value; none where the mapping loses it.
fn json_of(shape: &Shape, value: &EvalResult) -> Option<Value> {
    match (shape, value) {
        (Shape::Scalar(_), EvalResult::Bool(value)) => Some(Value::Bool(*value)),
        (Shape::Scalar(_), EvalResult::Long(value)) => Some(json!(value)),
        (Shape::Scalar(_), EvalResult::String(value)) => Some(json!(value)),
        (Shape::Scalar(_), EvalResult::ExtensionValue(text)) => {
            // `decimal("1.5")`; what is computed, as dates with an offset are, is left aside.
            let (_, inside) = text.split_once("(\"")?;
            Some(json!(inside.strip_suffix("\")")?))
        }
        (Shape::Scalar(_), EvalResult::Record(number)) => {
            let long = |name: &str| match number.get(name) {
                Some(EvalResult::Long(value)) => Some(*value),
                _ => None,
            };
            let (floor, ceil) = (long("floor")?, long("ceil")?);
            (floor == ceil).then(|| Value::Number(Number::from(floor)))
        }
        (Shape::Enum(_), EvalResult::EntityUid(uid)) => Some(json!(uid.id().unescaped())),
        (Shape::Record(shape), EvalResult::Record(record)) => {
            if shape.rest.is_some() {
                return None;
            }
            object_of(shape, record)
        }
        (Shape::Maybe(inner), EvalResult::Record(record)) => match record.get("value") {
            Some(value) => json_of(inner, value),
            None => Some(Value::Null),
        },
        (Shape::List(item), EvalResult::Set(items)) => list_of(item, items),
        (Shape::List(item), EvalResult::Record(record)) => match record.get("items")? {
            EvalResult::Set(items) => list_of(item, items),
            _ => None,
        },
        _ => None,
    }
}

fn list_of(item: &Shape, items: &cedar_policy::Set) -> Option<Value> {
    let items: Option<Vec<Value>> = items.iter().map(|value| json_of(item, value)).collect();
    items.map(Value::Array)
}

fn object_of(shape: &RecordShape, record: &cedar_policy::Record) -> Option<Value> {
    let mut object = Map::new();
    for Field { key, shape, .. } in &shape.fields {
        if let Some(value) = record.get(key) {
            object.insert(key.clone(), json_of(shape, value)?);
        }
    }
    Some(Value::Object(object))
}

fn as_yaml(case: &Case) -> String {
    let mut users: BTreeMap<&str, &User> = BTreeMap::new();
    let everyone = std::iter::once(&case.user)
        .chain(case.approvers.iter().map(|approver| &approver.user))
        .chain(&case.approvals.approvers);
    for user in everyone {
        users.insert(&user.id, user);
    }
    let mut out = String::from("users:\n");
    for (id, user) in users {
        let _ = writeln!(
            out,
            "  {}: {}",
            yaml_text(id),
            json!({"roles": user.roles, "attributes": user.attributes})
        );
    }
    let moment = |micros: i64| datetime_text(micros.div_euclid(1000)).unwrap_or_default();
    let _ = writeln!(out, "cases:\n  - name: {}", yaml_text(&case.name));
    let _ = writeln!(out, "    now: {}", yaml_text(&moment(case.now)));
    let _ = writeln!(out, "    user: {}", yaml_text(&case.user.id));
    let _ = writeln!(out, "    agent: {}", yaml_text(&case.agent));
    let _ = writeln!(out, "    run: {}", yaml_text(&case.run));
    let _ = writeln!(out, "    step: {}", case.step);
    let _ = writeln!(out, "    call: {}", yaml_text(&case.tool));
    let _ = writeln!(out, "    args: {}", case.arguments);
    let _ = writeln!(out, "    session: {}", json!(case.session));
    if let Some(derived) = &case.derived {
        let _ = writeln!(out, "    derived: {}", json!(derived));
    }
    if !case.approvers.is_empty() {
        let approvers: Vec<&str> = case
            .approvals
            .approvers
            .iter()
            .map(|u| u.id.as_str())
            .collect();
        let _ = writeln!(out, "    approved_by: {}", json!(approvers));
        let _ = writeln!(
            out,
            "    requested_at: {}",
            yaml_text(&moment(case.approvals.requested_at))
        );
    }
    for approver in &case.approvers {
        let field = if approver.may {
            "may_approve"
        } else {
            "may_not_approve"
        };
        let _ = writeln!(out, "    {field}: [{}]", yaml_text(&approver.user.id));
    }
    if let Some((outcome, _)) = &case.outcome {
        let text = match outcome {
            Outcome::Allow => "allow".to_owned(),
            Outcome::Deny => "deny".to_owned(),
            Outcome::RequireApproval { quorum } => format!("{quorum} approvals"),
        };
        let _ = writeln!(out, "    expect: {text}\n    by: any");
    }
    out
}

/// The counterexample as a test of `cedar run-tests`, for the files under `cedar`.
fn cedar_test(invariant: &Invariant, env: &Env) -> String {
    let text = |uid: Option<&EntityUid>| uid.map(ToString::to_string);
    let context = env
        .request
        .context()
        .and_then(|context| context.to_json_value().ok());
    let decision = match invariant.claim {
        Claim::Never(_) => "deny",
        Claim::Always(_) => "allow",
    };
    let tests = json!([{
        "name": invariant.name,
        "request": {
            "principal": text(env.request.principal()),
            "action": text(env.request.action()),
            "resource": text(env.request.resource()),
            "context": context,
        },
        "entities": env.entities.to_json_value().ok(),
        "decision": decision,
        "reason": [],
        "num_errors": 0,
    }]);
    format!("{tests:#}\n")
}
