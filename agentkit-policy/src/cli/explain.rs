//! `explain`: how one call is decided and why, and who could approve it.

use std::fmt::Write as _;
use std::io::{self, Write};

use clap::Args;
use serde_json::{Value, json};

use crate::call::{Approvals, Call, Facts, User};
use crate::load_error::LoadError;
use crate::session::SessionFacts;
use crate::set::PolicySet;
use crate::suite::{at_moment, now};
use crate::tool::nearest;

use super::input::{Input, Loaded, usage};
use super::{Format, OK, invalid};

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    input: Input,
    /// Explain the case of the test file that has this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["call", "user", "args", "now"])]
    case: Option<String>,
    /// Tool that is called.
    #[arg(long, value_name = "TOOL", requires = "user")]
    call: Option<String>,
    /// On whose behalf, with roles: `clara:clerk,cashier`.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Arguments of the call, as JSON.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// When, such as `2026-03-01T12:00:00Z`; now if it is left out.
    #[arg(long, value_name = "MOMENT")]
    now: Option<String>,
    /// Name of the agent.
    #[arg(long, default_value = "agent")]
    agent: String,
    /// Ask whether this person could approve, with roles: `fiona:finance`.
    #[arg(long, value_name = "USER")]
    approver: Vec<String>,
    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn explain(
    args: &ExplainArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    match answer(args) {
        Ok((text, json)) => {
            match args.format {
                Format::Text => writeln!(out, "{text}")?,
                Format::Json => writeln!(out, "{json:#}")?,
            }
            Ok(OK)
        }
        Err(error) => invalid(&error, args.format, out, err),
    }
}

fn answer(args: &ExplainArgs) -> Result<(String, Value), LoadError> {
    let input = args.input.read()?;
    let set = input.load()?;
    if let Some(name) = &args.case {
        let Loaded::Suite(suite) = &input else {
            return Err(usage(
                "`--case` is given and no test file".to_owned(),
                "name a test file (`.yaml`)",
            ));
        };
        let Some(explanation) = suite.explain(&set, name) else {
            let near = nearest(name, suite.case_names());
            return Err(usage(
                format!("the test file has no case `{name}`"),
                &near.map_or_else(
                    || "give the name as `test` prints it".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                ),
            ));
        };
        return Ok((explanation.to_string(), json!(explanation)));
    }
    let (Some(tool), Some(user)) = (&args.call, &args.user) else {
        return Err(usage(
            "it is not said which call to explain".to_owned(),
            "add `--call TOOL --user NAME:ROLE --args JSON`, or `--case NAME` with a test file",
        ));
    };
    let arguments: Value = serde_json::from_str(&args.args).map_err(|error| {
        usage(
            format!("`--args` is not JSON: {error}"),
            "write an object, such as `{\"amount_cents\": 5000}`",
        )
    })?;
    let now = match &args.now {
        Some(text) => at_moment(text).ok_or_else(|| {
            usage(
                format!("`--now` is `{text}`"),
                "write `2026-03-01T12:00:00Z`",
            )
        })?,
        None => now(),
    };
    let user = person(user)?;
    // The past is not told: the call is the first of its session.
    let session = SessionFacts::fresh("explain", &args.agent, now);
    let call = Call {
        tool,
        arguments: &arguments,
        user: &user,
        agent: &args.agent,
        run: "explain",
        step: 0,
        now,
        facts: Facts {
            session: Some(&session),
            ..Facts::default()
        },
    };
    about_call(&set, &call, &args.approver)
}

fn about_call(
    set: &PolicySet,
    call: &Call<'_>,
    approvers: &[String],
) -> Result<(String, Value), LoadError> {
    let explanation = set.explain(call);
    let mut text = explanation.to_string();
    let mut json = json!(explanation);
    let asked = Approvals::requested_at(call.now);
    let mut answers = Vec::new();
    for approver in approvers {
        let person = person(approver)?;
        let permission = set.may_approve(call, &person, &asked);
        let may = if permission.permitted {
            "may"
        } else {
            "may not"
        };
        let _ = write!(
            text,
            "\n  `{}` {may} approve: {}",
            person.id, permission.why
        );
        for policy in &permission.determining {
            let _ = write!(text, "\n    by {policy}");
        }
        for error in &permission.errors {
            let _ = write!(text, "\n    error: {error}");
        }
        answers.push(json!({"user": person.id, "permission": permission}));
    }
    if let Some(object) = json.as_object_mut().filter(|_| !answers.is_empty()) {
        object.insert("approvers".to_owned(), Value::Array(answers));
    }
    Ok((text, json))
}

/// `clara:clerk,cashier`
fn person(text: &str) -> Result<User, LoadError> {
    let (id, roles) = text.split_once(':').unwrap_or((text, ""));
    if id.is_empty() {
        return Err(usage(
            format!("`{text}` names nobody"),
            "write `name`, or `name:role,role`",
        ));
    }
    let mut user = User::new(id);
    for role in roles.split(',').filter(|role| !role.is_empty()) {
        user = user.role(role);
    }
    Ok(user)
}
