//! One question to Cedar, answered so that no error ever makes the answer laxer.

use std::collections::BTreeMap;

use cedar_policy::{
    AuthorizationError, Authorizer, Decision as CedarDecision, Entities, EntityUid, PolicyId,
    Request, Response,
};

use crate::attribute::{AttributeType, AttributeValue};
use crate::call::{Call, Facts, User};
use crate::cedar::{self, Value};
use crate::decision::{EvaluationError, Question};
use crate::declaration::Settings;
use crate::entities::{Known, People, uid};
use crate::index::Policies;
use crate::session::session_value;
use crate::shape::{Mapped, datetime_text, map_input, string_fits};
use crate::slice::Slice;

/// The answer to one question.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) permitted: bool,
    /// A forbid matched, or its evaluation failed.
    pub(crate) forbidden: bool,
    /// Ids of the determining policies.
    pub(crate) reasons: Vec<String>,
    pub(crate) errors: Vec<EvaluationError>,
}

impl Answer {
    fn refused(error: EvaluationError) -> Self {
        Self {
            errors: vec![error],
            // A question that cannot be put is not passed over for the next one.
            forbidden: true,
            ..Self::default()
        }
    }
}

/// Puts a question to Cedar. A forbid whose evaluation fails counts as matched.
pub(crate) fn answer(
    question: Question,
    policies: &Policies,
    request: &Request,
    entities: &Entities,
) -> Answer {
    let mut sum = Sum::default();
    for set in policies.about(request.principal(), entities) {
        let response = Authorizer::new().is_authorized(request, set, entities);
        sum.add(question, policies, &response);
    }
    sum.answer()
}

/// The id as it was given; its display would escape it.
fn name(id: &PolicyId) -> String {
    AsRef::<str>::as_ref(id).to_owned()
}

/// The answers of the sets that were asked, put together.
#[derive(Default)]
struct Sum {
    permits: Vec<String>,
    /// Those that matched and those whose evaluation failed.
    forbids: Vec<String>,
    errors: Vec<EvaluationError>,
}

impl Sum {
    fn add(&mut self, question: Question, policies: &Policies, response: &Response) {
        for AuthorizationError::PolicyEvaluationError(error) in response.diagnostics().errors() {
            let id = error.policy_id();
            // A policy that cannot be found cannot be shown to be a permit.
            let permit = policies
                .policy(id)
                .is_some_and(|policy| policy.effect() == cedar_policy::Effect::Permit);
            if !permit {
                self.forbids.push(name(id));
            }
            self.errors.push(EvaluationError {
                question: Some(question),
                policy: Some(name(id)),
                message: format!("its evaluation failed: {}", error.inner()),
            });
        }
        let allowed = response.decision() == CedarDecision::Allow;
        let before = self.permits.len();
        let reasons = response.diagnostics().reason().map(name);
        if allowed {
            self.permits.extend(reasons);
        } else {
            self.forbids.extend(reasons);
        }
        if allowed && self.permits.len() == before {
            self.errors.push(EvaluationError {
                question: Some(question),
                policy: None,
                message: "the engine allowed the call without a reason, which is denied".to_owned(),
            });
        }
    }

    fn answer(mut self) -> Answer {
        let forbidden = !self.forbids.is_empty();
        let mut reasons = if forbidden {
            self.forbids
        } else {
            self.permits
        };
        reasons.sort_unstable();
        reasons.dedup();
        self.errors.sort_by(|a, b| a.policy.cmp(&b.policy));
        Answer {
            permitted: !forbidden && !reasons.is_empty(),
            forbidden,
            reasons,
            errors: self.errors,
        }
    }
}

/// The approvals that a question is asked with.
#[derive(Clone, Copy)]
pub(crate) struct Votes<'a> {
    pub(crate) approvers: &'a [EntityUid],
    /// Milliseconds since the epoch.
    pub(crate) requested_at: i64,
}

/// A call made ready to be asked about.
pub(crate) struct Prepared<'a> {
    slice: &'a Slice,
    facts: Facts<'a>,
    shadow: bool,
    requester: EntityUid,
    agent: EntityUid,
    people: People,
    /// The time of the call in milliseconds, and as a value: making one takes a while.
    now: (i64, Value),
    /// What every question's context begins with.
    context: Vec<(&'static str, Value)>,
}

type Fault = String;

impl<'a> Prepared<'a> {
    /// Maps the call. `people` are those besides the requester who will take part; where one of
    /// them is the requester, their record is the fresher one.
    pub(crate) fn new(
        slice: &'a Slice,
        settings: &Settings,
        call: &Call<'a>,
        people: &[&User],
        reads_arguments: bool,
    ) -> Result<Self, EvaluationError> {
        Self::map(slice, settings, call, people, reads_arguments).map_err(|message| {
            EvaluationError {
                question: None,
                policy: None,
                message,
            }
        })
    }

    fn map(
        slice: &'a Slice,
        settings: &Settings,
        call: &Call<'a>,
        people: &[&User],
        reads_arguments: bool,
    ) -> Result<Self, Fault> {
        let mut context = Vec::with_capacity(9);
        let mapped = if reads_arguments {
            map_input(&slice.tool.input, call.arguments).map_err(|error| {
                if error.path.is_empty() {
                    format!("arguments: {}", error.message)
                } else {
                    format!("argument `{}`: {}", error.path, error.message)
                }
            })?
        } else {
            Mapped {
                input: Value::record::<&str>([])?,
                entities: Vec::new(),
            }
        };
        context.push(("input", mapped.input));
        let declared = &slice.tool.declaration;
        if reads_arguments && !declared.derived.is_empty() {
            let derived = derived(&declared.derived, call.facts.derived)?;
            context.push(("derived", derived));
        }
        let extension = reads_arguments.then_some(&settings.extension);
        let provided = Known::of(extension, call.facts.provided)?;
        context.extend(provided.app()?.map(|app| ("app", app)));
        let now = call.now.div_euclid(1000);
        let now = (now, datetime(now)?);
        let system = Value::record([("now", now.1.clone())])?;
        context.push(("system", system));
        let run = Value::record([
            ("id", text(call.run)?),
            ("step", Value::long(call.step.into())),
        ])?;
        context.push(("run", run));
        context.push(("tool", slice.hints.clone()));

        let mut entities = People::new(settings, &provided, call.agent)?;
        let fresher = people.iter().find(|person| person.id == call.user.id);
        entities.add(fresher.copied().unwrap_or(call.user))?;
        for person in people.iter().filter(|person| person.id != call.user.id) {
            entities.add(person)?;
        }
        Ok(Self {
            requester: uid("User", &call.user.id)?,
            agent: uid("Agent", call.agent)?,
            people: entities.finish(slice, mapped.entities)?,
            now,
            context,
            slice,
            facts: call.facts,
            shadow: false,
        })
    }

    /// Lets the policies in `@mode("log_only")` take part.
    pub(crate) fn with_shadow(mut self) -> Self {
        self.shadow = true;
        self
    }

    pub(crate) fn unattended(&self) -> Answer {
        self.ask(Question::Unattended, &self.requester, None)
    }

    pub(crate) fn approved(&self, votes: Votes<'_>) -> Answer {
        self.ask(Question::Approved, &self.requester, Some(votes))
    }

    pub(crate) fn approve(&self, approver: &EntityUid, votes: Votes<'_>) -> Answer {
        self.ask(Question::Approve, approver, Some(votes))
    }

    /// Evaluates a single clause as it would be evaluated within a question.
    pub(crate) fn holds(
        &self,
        question: Question,
        votes: Option<Votes<'_>>,
        clause: &cedar_policy::Expression,
    ) -> Result<bool, Fault> {
        let action = &self.slice.asked(question).action;
        let request = self.request(question, action, &self.requester, votes)?;
        match cedar_policy::eval_expression(&request, self.people.entities(), clause) {
            Ok(cedar_policy::EvalResult::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it is not a truth value but `{other}`")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The value of a part of a clause as it would be within a question, as text.
    pub(crate) fn value(
        &self,
        question: Question,
        votes: Option<Votes<'_>>,
        part: &cedar_policy::Expression,
    ) -> Option<String> {
        let action = &self.slice.asked(question).action;
        let request = self
            .request(question, action, &self.requester, votes)
            .ok()?;
        cedar_policy::eval_expression(&request, self.people.entities(), part)
            .ok()
            .map(|value| value.to_string())
    }

    fn ask(&self, question: Question, principal: &EntityUid, votes: Option<Votes<'_>>) -> Answer {
        let asked = self.slice.asked(question);
        let request = match self.request(question, &asked.action, principal, votes) {
            Ok(request) => request,
            Err(message) => {
                return Answer::refused(EvaluationError {
                    question: Some(question),
                    policy: None,
                    message,
                });
            }
        };
        let policies = match (&asked.with_shadow, self.shadow) {
            (Some(with_shadow), true) => with_shadow,
            _ => &asked.policies,
        };
        let answer = answer(question, policies, &request, self.people.entities());
        #[cfg(feature = "suite")]
        if let Some(listener) = self.slice.listener.as_ref().filter(|_| !self.shadow) {
            listener.hear(crate::heard::Heard {
                tool: self.slice.tool.name().to_owned(),
                question,
                request,
                entities: self.people.entities().clone(),
                permitted: answer.permitted,
                forbidden: answer.forbidden,
                reasons: answer.reasons.clone(),
            });
        }
        answer
    }

    fn request(
        &self,
        question: Question,
        action: &EntityUid,
        principal: &EntityUid,
        votes: Option<Votes<'_>>,
    ) -> Result<Request, Fault> {
        let mut pairs = self.context.clone();
        let asked = self.slice.asked(question);
        let (fields, of) = match (&asked.shadow_context, self.shadow) {
            (Some(of), true) => (&asked.shadow_session, of),
            _ => (&asked.session, &asked.context),
        };
        let session = session_value(fields, self.facts.session)?;
        pairs.extend(session.map(|session| ("session", session)));
        let mut named = vec![principal, &self.agent];
        if let Some(votes) = votes {
            let approvers = votes.approvers.iter().map(Value::entity);
            let count = i64::try_from(votes.approvers.len()).unwrap_or(i64::MAX);
            let requested_at = match &self.now {
                (now, made) if *now == votes.requested_at => made.clone(),
                _ => datetime(votes.requested_at)?,
            };
            let approvals = Value::record([
                ("count", Value::long(count)),
                ("approvers", Value::set(approvers)),
                ("requested_at", requested_at),
            ])?;
            pairs.push(("approvals", approvals));
            named.extend(votes.approvers);
        }
        if question == Question::Approve {
            pairs.push(("requester", Value::entity(&self.requester)));
            named.push(&self.requester);
        }
        // Cedar reads a missing entity as one without attributes and parents, and a forbid on
        // its group would not match.
        if let Some(missing) = named.into_iter().find(|uid| !self.people.holds(uid)) {
            return Err(format!("`{missing}` is not among the entities of the call"));
        }
        let context = cedar::context(pairs)?;
        let checked = of.check(principal, &self.agent, &context);
        #[cfg(debug_assertions)]
        self.agree(action, principal, &context, checked.is_ok())?;
        checked?;
        Request::new(
            principal.clone(),
            action.clone(),
            self.agent.clone(),
            context,
            None,
        )
        .map_err(|error| error.to_string())
    }

    /// A build for development asks Cedar too whether the context is of its type.
    #[cfg(debug_assertions)]
    fn agree(
        &self,
        action: &EntityUid,
        principal: &EntityUid,
        context: &cedar_policy::Context,
        fits: bool,
    ) -> Result<(), Fault> {
        let schema = match (&self.slice.shadow_schema, self.shadow) {
            (Some(schema), true) => schema,
            _ => &self.slice.schema,
        };
        let (principal, resource) = (principal.clone(), self.agent.clone());
        let context = context.clone();
        let asked = Request::new(principal, action.clone(), resource, context, Some(schema));
        match asked {
            Ok(_) if fits => Ok(()),
            Err(_) if !fits => Ok(()),
            Ok(_) => Err("Cedar takes a context that is refused here".to_owned()),
            Err(error) => Err(format!(
                "Cedar refuses a context that is taken here: {error}"
            )),
        }
    }
}

fn derived(
    declared: &BTreeMap<String, AttributeType>,
    facts: Option<&BTreeMap<String, AttributeValue>>,
) -> Result<Value, Fault> {
    let undeclared =
        facts.and_then(|facts| facts.keys().find(|name| !declared.contains_key(*name)));
    if let Some(name) = undeclared {
        return Err(format!(
            "derived fact `{name}`: the tool does not declare it"
        ));
    }
    let mut pairs = Vec::with_capacity(declared.len());
    for (name, kind) in declared {
        let value = facts.and_then(|facts| facts.get(name)).ok_or_else(|| {
            format!("derived fact `{name}`: the tool declares it and it was not handed in")
        })?;
        let value = kind
            .map(value)
            .map_err(|why| format!("derived fact `{name}`: {why}"))?;
        pairs.push((name, value));
    }
    Value::record(pairs)
}

fn text(text: &str) -> Result<Value, Fault> {
    string_fits(text)?;
    Ok(Value::text(text))
}

fn datetime(millis: i64) -> Result<Value, Fault> {
    let text = datetime_text(millis).ok_or_else(|| {
        format!("the time `{millis}` (milliseconds) lies outside of the years 0 to 9999")
    })?;
    Value::datetime(&text)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        reason = "tests may"
    )]

    use std::collections::HashSet;

    use super::*;
    use crate::cedar::Entity;
    use crate::declaration::{PolicySource, ToolDeclaration};
    use crate::engine::PolicyEngine;

    /// Cedar answers so where a policy is `unknown` to it, which needs its feature `partial-eval`.
    #[test]
    fn an_allow_without_a_reason_is_a_denial() {
        let reasonless = Response::new(CedarDecision::Allow, HashSet::new(), Vec::new());
        assert_eq!(reasonless.decision(), CedarDecision::Allow);
        let mut sum = Sum::default();
        sum.add(Question::Unattended, &Policies::default(), &reasonless);
        let answer = sum.answer();
        assert!(!answer.permitted && answer.reasons.is_empty());
        assert!(answer.errors[0].message.contains("without a reason"));
        let reason = HashSet::from([PolicyId::new("p")]);
        let reasoned = Response::new(CedarDecision::Allow, reason, Vec::new());
        let mut sum = Sum::default();
        sum.add(Question::Unattended, &Policies::default(), &reasoned);
        assert!(sum.answer().permitted, "with a reason it is permitted");
    }

    /// Cedar's display of an id escapes it, and nothing would be found under that.
    #[test]
    fn a_policy_is_named_by_its_id_as_it_was_written() {
        let text = r#"@id("say \"hi\"") permit (principal, action == Action::"t", resource);"#;
        let tool = ToolDeclaration::new("t", serde_json::json!({"type": "object"}));
        let engine = PolicyEngine::load(vec![tool], &[PolicySource::new("p.cedar", text)]).unwrap();
        let (user, arguments) = (User::new("u"), serde_json::json!({}));
        let decision = engine.current().decide(&Call {
            tool: "t",
            arguments: &arguments,
            user: &user,
            agent: "a",
            run: "r",
            step: 0,
            now: 0,
            facts: Facts::default(),
        });
        assert_eq!(decision.determining[0].id, "say \"hi\"");
    }

    /// The only guard between a person of whom nothing is known and a forbid on their role.
    #[test]
    fn a_question_that_names_someone_who_is_not_among_the_entities_is_refused() {
        let text = "@id(\"all\") permit (principal, action == Action::\"approve t\", resource);
            @id(\"some\") permit (principal, action == Action::\"t with approval\", resource);
            @id(\"never\") forbid (principal in Role::\"blocked\", action == Action::\"approve t\", resource);";
        let tool = ToolDeclaration::new("t", serde_json::json!({"type": "object"}));
        let engine = PolicyEngine::load(vec![tool], &[PolicySource::new("p.cedar", text)]).unwrap();
        let set = engine.current();
        let slice = set.slices.get("t").unwrap();
        let (user, arguments) = (User::new("u"), serde_json::json!({}));
        let call = Call {
            tool: "t",
            arguments: &arguments,
            user: &user,
            agent: "a",
            run: "r",
            step: 0,
            now: 0,
            facts: Facts::default(),
        };
        // Whoever they are, they are in the role `blocked`; and nobody put them among the entities.
        let absent = uid("User", "x").unwrap();
        let votes = |approvers| Votes {
            approvers,
            requested_at: 0,
        };
        let prepared = set.prepare(slice, &call, &[]).unwrap();
        let of_all = [absent.clone()];
        for answer in [
            prepared.approve(&absent, votes(&[])),
            prepared.approved(votes(&of_all)),
        ] {
            assert!(answer.forbidden && !answer.permitted, "{answer:?}");
            assert!(answer.errors[0].message.contains("not among the entities"));
        }
        // Without the guard Cedar permits, and reports nothing.
        let mut known = set.prepare(slice, &call, &[]).unwrap();
        known.people.add(Entity::named(absent.clone())).unwrap();
        let question = Question::Approve;
        let action = &slice.asked(question).action;
        let request = known
            .request(question, action, &absent, Some(votes(&[])))
            .unwrap();
        let policies = &slice.asked(question).policies;
        let plain = answer(question, policies, &request, prepared.people.entities());
        assert!(plain.permitted && plain.errors.is_empty(), "{plain:?}");
    }
}
