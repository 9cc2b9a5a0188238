//! One question to Cedar, answered so that no error ever makes the answer laxer.

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision as CedarDecision, Entities, Entity, EntityId,
    EntityTypeName, EntityUid, Request, RestrictedExpression,
};

use crate::call::{Call, User};
use crate::decision::{EvaluationError, Question};
use crate::declaration::{AttributeType, AttributeValue, Settings};
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
            ..Self::default()
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
    settings: &'a Settings,
    shadow: bool,
    requester: EntityUid,
    agent: EntityUid,
    entities: Entities,
    input: RestrictedExpression,
    system: RestrictedExpression,
    run: RestrictedExpression,
    tool: RestrictedExpression,
}

type Fault = String;

impl<'a> Prepared<'a> {
    /// Maps the call. `people` are those besides the requester who will take part; where one of
    /// them is the requester, their record is the fresher one.
    pub(crate) fn new(
        slice: &'a Slice,
        settings: &'a Settings,
        call: &Call<'_>,
        people: &[&User],
        reads_arguments: bool,
    ) -> Result<Self, EvaluationError> {
        let fault = |message: Fault| EvaluationError {
            question: None,
            policy: None,
            message,
        };
        let mapped = if reads_arguments {
            map_input(&slice.tool.input, call.arguments).map_err(|error| {
                fault(if error.path.is_empty() {
                    format!("arguments: {}", error.message)
                } else {
                    format!("argument `{}`: {}", error.path, error.message)
                })
            })?
        } else {
            Mapped {
                input: record([]).map_err(fault)?,
                entities: Vec::new(),
            }
        };
        let agent = uid("Agent", call.agent).map_err(fault)?;
        let mut entities = mapped.entities;
        entities.push(Entity::with_uid(agent.clone()));
        let fresher = people.iter().find(|person| person.id == call.user.id);
        let everyone = std::iter::once(fresher.copied().unwrap_or(call.user)).chain(
            people
                .iter()
                .copied()
                .filter(|person| person.id != call.user.id),
        );
        let mut roles = std::collections::BTreeSet::new();
        for person in everyone {
            entities.push(user_entity(person, settings).map_err(fault)?);
            roles.extend(person.roles.iter());
        }
        for role in roles {
            entities.push(Entity::with_uid(uid("Role", role).map_err(fault)?));
        }
        let declared = &slice.tool.declaration;
        let flag = RestrictedExpression::new_bool;
        let text = |text: &str| -> Result<RestrictedExpression, EvaluationError> {
            string_fits(text).map_err(fault)?;
            Ok(RestrictedExpression::new_string(text.to_owned()))
        };
        Ok(Self {
            requester: uid("User", &call.user.id).map_err(fault)?,
            agent,
            entities: slice
                .actions
                .clone()
                .add_entities(entities, Some(&slice.schema))
                .map_err(|error| fault(error.to_string()))?,
            input: mapped.input,
            system: record([("now", datetime(call.now.div_euclid(1000)).map_err(fault)?)])
                .map_err(fault)?,
            run: record([
                ("id", text(call.run)?),
                ("step", RestrictedExpression::new_long(call.step.into())),
            ])
            .map_err(fault)?,
            tool: record([
                ("name", text(&declared.name)?),
                ("read_only", flag(declared.read_only)),
                ("destructive", flag(declared.destructive)),
                ("idempotent", flag(declared.idempotent)),
            ])
            .map_err(fault)?,
            slice,
            settings,
            shadow: false,
        })
    }

    /// Lets the policies in `@mode("log_only")` take part.
    pub(crate) fn with_shadow(mut self) -> Self {
        self.shadow = true;
        self
    }

    /// Adds people who are not known when the call is mapped.
    pub(crate) fn add_people(&mut self, people: &[User]) -> Result<(), EvaluationError> {
        let entities: Result<Vec<Entity>, Fault> = people
            .iter()
            .map(|person| user_entity(person, self.settings))
            .collect();
        let fault = |message| EvaluationError {
            question: None,
            policy: None,
            message,
        };
        self.entities = std::mem::replace(&mut self.entities, Entities::empty())
            .add_entities(entities.map_err(fault)?, Some(&self.slice.schema))
            .map_err(|error| fault(error.to_string()))?;
        Ok(())
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
        match cedar_policy::eval_expression(&request, &self.entities, clause) {
            Ok(cedar_policy::EvalResult::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it is not a truth value but `{other}`")),
            Err(error) => Err(error.to_string()),
        }
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
        let response = Authorizer::new().is_authorized(&request, policies, &self.entities);
        let mut errors = Vec::new();
        let mut errored_forbids = Vec::new();
        for AuthorizationError::PolicyEvaluationError(error) in response.diagnostics().errors() {
            let id = error.policy_id();
            // A policy that cannot be found cannot be shown to be a permit.
            let permit = policies
                .policy(id)
                .is_some_and(|policy| policy.effect() == cedar_policy::Effect::Permit);
            if !permit {
                errored_forbids.push(id.to_string());
            }
            errors.push(EvaluationError {
                question: Some(question),
                policy: Some(id.to_string()),
                message: format!("its evaluation failed: {}", error.inner()),
            });
        }
        let mut reasons: Vec<String> = response
            .diagnostics()
            .reason()
            .map(ToString::to_string)
            .collect();
        let allowed = response.decision() == CedarDecision::Allow;
        if allowed && reasons.is_empty() {
            errors.push(EvaluationError {
                question: Some(question),
                policy: None,
                message: "the engine allowed the call without a reason, which is denied".to_owned(),
            });
        }
        let mut forbidden = !allowed && !reasons.is_empty();
        if !errored_forbids.is_empty() {
            if allowed {
                reasons.clear();
            }
            forbidden = true;
            reasons.extend(errored_forbids);
        }
        reasons.sort_unstable();
        reasons.dedup();
        errors.sort_by(|a, b| a.policy.cmp(&b.policy));
        Answer {
            permitted: allowed && !forbidden && !reasons.is_empty(),
            forbidden,
            reasons,
            errors,
        }
    }

    fn request(
        &self,
        question: Question,
        action: &EntityUid,
        principal: &EntityUid,
        votes: Option<Votes<'_>>,
    ) -> Result<Request, Fault> {
        let mut pairs = vec![
            ("input".to_owned(), self.input.clone()),
            ("system".to_owned(), self.system.clone()),
            ("run".to_owned(), self.run.clone()),
            ("tool".to_owned(), self.tool.clone()),
        ];
        let mut named = vec![principal, &self.agent];
        if let Some(votes) = votes {
            let approvers = votes.approvers.iter().cloned();
            let count = i64::try_from(votes.approvers.len()).unwrap_or(i64::MAX);
            pairs.push((
                "approvals".to_owned(),
                record([
                    ("count", RestrictedExpression::new_long(count)),
                    (
                        "approvers",
                        RestrictedExpression::new_set(
                            approvers.map(RestrictedExpression::new_entity_uid),
                        ),
                    ),
                    ("requested_at", datetime(votes.requested_at)?),
                ])?,
            ));
            named.extend(votes.approvers);
        }
        if question == Question::Approve {
            pairs.push((
                "requester".to_owned(),
                RestrictedExpression::new_entity_uid(self.requester.clone()),
            ));
            named.push(&self.requester);
        }
        // Cedar reads a missing entity as one without attributes and parents, and a forbid on
        // its group would not match.
        if let Some(missing) = named
            .into_iter()
            .find(|uid| self.entities.get(uid).is_none())
        {
            return Err(format!("`{missing}` is not among the entities of the call"));
        }
        let context = Context::from_pairs(pairs).map_err(|error| error.to_string())?;
        Request::new(
            principal.clone(),
            action.clone(),
            self.agent.clone(),
            context,
            Some(&self.slice.schema),
        )
        .map_err(|error| error.to_string())
    }
}

pub(crate) fn user_uid(id: &str) -> Result<EntityUid, Fault> {
    uid("User", id)
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, Fault> {
    if id.is_empty() {
        return Err(format!("the id of the {} is empty", kind.to_lowercase()));
    }
    string_fits(id).map_err(|message| format!("id of the {}: {message}", kind.to_lowercase()))?;
    let kind: EntityTypeName = kind
        .parse()
        .map_err(|error: cedar_policy::ParseErrors| error.to_string())?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

fn user_entity(user: &User, settings: &Settings) -> Result<Entity, Fault> {
    let mut attributes = Vec::new();
    for (name, kind) in &settings.user_attributes {
        let Some(value) = user.attributes.get(name) else {
            continue;
        };
        let text = |text: &String| {
            string_fits(text).map_err(|message| format!("attribute `{name}`: {message}"))?;
            Ok::<_, Fault>(RestrictedExpression::new_string(text.clone()))
        };
        let expression = match (kind, value) {
            (AttributeType::Bool, AttributeValue::Bool(value)) => {
                RestrictedExpression::new_bool(*value)
            }
            (AttributeType::Long, AttributeValue::Long(value)) => {
                RestrictedExpression::new_long(*value)
            }
            (AttributeType::String, AttributeValue::String(value)) => text(value)?,
            (AttributeType::Strings, AttributeValue::Strings(values)) => {
                let values: Result<Vec<_>, Fault> = values.iter().map(text).collect();
                RestrictedExpression::new_set(values?)
            }
            (kind, _) => {
                return Err(format!(
                    "attribute `{name}` of user `{}` is not of its declared type {kind:?}",
                    user.id
                ));
            }
        };
        attributes.push((name.clone(), expression));
    }
    let parents: Result<Vec<EntityUid>, Fault> =
        user.roles.iter().map(|role| uid("Role", role)).collect();
    Entity::new_with_tags(uid("User", &user.id)?, attributes, parents?, [])
        .map_err(|error| error.to_string())
}

fn record<const N: usize>(
    pairs: [(&str, RestrictedExpression); N],
) -> Result<RestrictedExpression, Fault> {
    RestrictedExpression::new_record(pairs.map(|(name, value)| (name.to_owned(), value)))
        .map_err(|error| error.to_string())
}

fn datetime(millis: i64) -> Result<RestrictedExpression, Fault> {
    datetime_text(millis)
        .map(RestrictedExpression::new_datetime)
        .ok_or_else(|| {
            format!("the time `{millis}` (milliseconds) lies outside of the years 0 to 9999")
        })
}
