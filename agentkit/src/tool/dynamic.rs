use std::{future::Future, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use jsonschema::Validator;
use serde_json::Value;

use super::{
    ApprovalRule, ArgumentError, ArgumentProblem, DynTool, Flow, Hints, ToolContext, ToolError,
    ToolSpec, against_schema, schema, settle, spec::check_name,
};
use crate::call::Canonical;

type Body = dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<Flow<Value, Value>, ToolError>>
    + Send
    + Sync;

/// A tool whose arguments are described by a JSON Schema that is known at run time only, such as
/// one that another program offers.
///
/// Arguments are checked against the schema with the strictness of typed tools: an object that
/// lists its properties and does not say what else it takes is closed, at every depth. References
/// to other documents are refused, so that nothing is fetched.
pub struct Dynamic {
    spec: ToolSpec,
    input: Validator,
    question: Option<(Validator, Validator)>,
    body: Arc<Body>,
}

/// Why a [`Dynamic`] tool cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DynamicError {
    /// No model provider would take the name.
    #[error("`{name}` is no name for a tool: {rule}")]
    Name {
        /// The name.
        name: String,
        /// What a name must be.
        rule: &'static str,
    },
    /// The schema is no JSON Schema, or refers to another document.
    #[error("the {which} schema of `{tool}` cannot be used: {reason}")]
    Schema {
        /// The tool.
        tool: String,
        /// Which of its schemas: input, suspend or resume.
        which: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl Dynamic {
    /// A tool with this name and these arguments. `body` receives arguments that fit the schema.
    ///
    /// # Errors
    ///
    /// When providers would refuse the name, or the schema is invalid, does not describe an
    /// object, refers to another document or holds a pattern that cannot be matched in linear
    /// time.
    pub fn new<F, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        mut input_schema: Value,
        body: F,
    ) -> Result<Self, DynamicError>
    where
        F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Flow<Value, Value>, ToolError>> + Send + 'static,
    {
        let name = name.into();
        if let Err(rule) = check_name(&name) {
            return Err(DynamicError::Name { name, rule });
        }
        if input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(DynamicError::Schema {
                tool: name,
                which: "input",
                reason: "its `type` is not `object`; arguments are an object".to_owned(),
            });
        }
        schema::close(&mut input_schema);
        let input = compile(&name, "input", &input_schema)?;
        Ok(Self {
            spec: ToolSpec::new(name, description, input_schema),
            input,
            question: None,
            body: Arc::new(move |args, cx| Box::pin(body(args, cx))),
        })
    }

    /// Lets the tool ask a question: `suspend` describes what it shows, `resume` the answer.
    ///
    /// # Errors
    ///
    /// When a schema is invalid or refers to another document.
    pub fn question(mut self, suspend: Value, resume: Value) -> Result<Self, DynamicError> {
        let name = &self.spec.name;
        self.question = Some((
            compile(name, "suspend", &suspend)?,
            compile(name, "resume", &resume)?,
        ));
        self.spec.suspend_schema = Some(suspend);
        self.spec.resume_schema = Some(resume);
        Ok(self)
    }

    /// Whether each call needs an approval.
    pub fn approval(mut self, approval: ApprovalRule) -> Self {
        self.spec.approval = approval;
        self
    }

    /// What is claimed of the tool's effects.
    pub fn hints(mut self, hints: Hints) -> Self {
        self.spec.hints = hints;
        self
    }

    /// What its calls have to do with, such as `secret`: see [`ToolSpec::labels`].
    pub fn labels<L: Into<String>>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.spec.labels = labels.into_iter().map(Into::into).collect();
        self
    }

    /// How long one call may take; then it is cancelled and has failed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(timeout);
        self
    }

    /// The schema of the result.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.spec.output_schema = Some(schema);
        self
    }
}

fn compile(tool: &str, which: &'static str, schema: &Value) -> Result<Validator, DynamicError> {
    against_schema::compile(schema).map_err(|reason| DynamicError::Schema {
        tool: tool.to_owned(),
        which,
        reason,
    })
}

fn check(validator: &Validator, value: &Value) -> Result<Canonical, Vec<ArgumentProblem>> {
    let problems = against_schema::problems(validator, value);
    if !problems.is_empty() {
        return Err(problems);
    }
    Canonical::of(value).map_err(|error| vec![ArgumentProblem::new("$", error.to_string())])
}

impl DynTool for Dynamic {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn settle(&self, raw: &str) -> Result<Canonical, ArgumentError> {
        settle::object(raw)
            .map_err(|problem| vec![problem])
            .and_then(|value| check(&self.input, &value))
            .map_err(|problems| ArgumentError::new(settle::arguments_of(&self.spec.name), problems))
    }

    fn check_answer(&self, raw: &Value) -> Result<Canonical, ArgumentError> {
        let checked = match &self.question {
            Some((_, resume)) => check(resume, raw),
            None => Err(vec![ArgumentProblem::new("$", "the tool asks nothing")]),
        };
        checked.map_err(|problems| ArgumentError::new(settle::answer_to(&self.spec.name), problems))
    }

    fn run(
        &self,
        args: &Canonical,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<Flow<Canonical, Canonical>, ToolError>> {
        let body = Arc::clone(&self.body);
        let suspend = self.question.as_ref().map(|(suspend, _)| suspend.clone());
        let name = self.spec.name.clone();
        let args = args.to_value();
        Box::pin(async move {
            let args = args.map_err(ToolError::from_error)?;
            match body(args, cx).await? {
                Flow::Done(value) => Canonical::of(&value)
                    .map(Flow::Done)
                    .map_err(ToolError::from_error),
                Flow::Suspend(question) => {
                    let Some(suspend) = suspend else {
                        return Err(ToolError::new(format!(
                            "`{name}` asked a question but declares none"
                        )));
                    };
                    check(&suspend, &question)
                        .map(Flow::Suspend)
                        .map_err(|problems| {
                            ToolError::from_error(ArgumentError::new(
                                format!("the question of `{name}` does not fit"),
                                problems,
                            ))
                        })
                }
            }
        })
    }
}
