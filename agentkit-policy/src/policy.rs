//! One policy, parsed and checked as far as it can be checked alone.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::pst::{self, ActionConstraint, Clause, Expr};
use cedar_policy::{ParseErrors, Policy, PolicyId};
use miette::Diagnostic;

use crate::decision::{Effect, PolicyRef, Question};
use crate::declaration::Settings;
use crate::load_error::Finding;
use crate::mention::Mentions;
use crate::source::{Statement, code_of};
use crate::tool::{Named, Vocabulary, nearest};

/// Policies with more operators and brackets than this are refused before they are parsed.
const MAX_NESTING_BOUND: usize = 2_000;

const ANNOTATIONS: [&str; 7] = ["id", "title", "why", "owner", "notify", "severity", "mode"];

/// Which actions a policy answers for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A permit: one question, and the tools or groups it names.
    Permit {
        question: Question,
        actions: BTreeSet<String>,
    },
    /// A forbid on everything.
    ForbidAll,
    /// A forbid on exactly one action.
    ForbidOne(String),
    /// A forbid on actions and all that is in them.
    ForbidIn(BTreeSet<String>),
}

/// A policy of the application under its own id.
#[derive(Clone, Debug)]
pub(crate) struct LoadedPolicy {
    pub(crate) policy: Policy,
    pub(crate) about: PolicyRef,
    /// Where it begins, for findings.
    pub(crate) column: u32,
    pub(crate) scope: Scope,
    /// Names of all actions that it mentions.
    pub(crate) actions: BTreeSet<String>,
    /// Nesting of its expressions.
    pub(crate) height: usize,
    /// It is in `@mode("log_only")`: recorded, and without influence on decisions.
    pub(crate) log_only: bool,
    /// Its meaning as text: independent of comments, layout and annotations.
    pub(crate) canonical: String,
    /// Its annotations as text; they advise and never decide.
    pub(crate) annotations: String,
    pub(crate) body: pst::Template,
    /// What it reads of `context.session`.
    pub(crate) mentions: Mentions,
}

impl LoadedPolicy {
    pub(crate) fn id(&self) -> &str {
        &self.about.id
    }

    pub(crate) fn is_forbid(&self) -> bool {
        self.about.effect == Effect::Forbid
    }

    /// Whether the policy belongs into the slice of a question about a tool. `ancestors` are the
    /// groups that hold the question's action.
    pub(crate) fn answers(&self, question: Question, action: &str, ancestors: &[String]) -> bool {
        let named = |actions: &BTreeSet<String>| {
            actions.contains(action) || ancestors.iter().any(|group| actions.contains(group))
        };
        match &self.scope {
            Scope::Permit {
                question: own,
                actions,
            } => *own == question && named(actions),
            Scope::ForbidAll => true,
            Scope::ForbidOne(only) => only == action,
            Scope::ForbidIn(actions) => named(actions),
        }
    }

    pub(crate) fn finding(&self, message: impl Into<String>) -> Finding {
        Finding {
            file: Some(self.about.file.clone()),
            line: Some(self.about.line),
            column: Some(self.column),
            policy: Some(self.about.id.clone()),
            ..Finding::about(message)
        }
    }
}

/// Parses a statement; every finding about it is pushed.
pub(crate) fn parse(
    statement: &Statement<'_>,
    vocabulary: &Vocabulary,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Option<LoadedPolicy> {
    let before = findings.len();
    let at = |offset: usize, finding: Finding| {
        let (line, column) = statement.place(offset);
        Finding {
            file: Some(statement.source.name.clone()),
            line: Some(line),
            column: Some(column),
            ..finding
        }
    };
    if statement.nesting_bound > MAX_NESTING_BOUND {
        findings.push(at(
            0,
            Finding::about(format!(
                "a policy with {} operators and brackets is too large to be checked",
                statement.nesting_bound
            ))
            .suggest(format!("split it; at most {MAX_NESTING_BOUND} are allowed")),
        ));
        return None;
    }
    let policy = match Policy::parse(None, statement.text) {
        Ok(policy) => policy,
        Err(errors) => {
            parse_findings(&errors, &at, findings);
            return None;
        }
    };
    // Looking one up by its name parses the name.
    let notes: BTreeMap<&str, &str> = policy.annotations().collect();
    let Some(id) = notes.get("id").filter(|id| !id.is_empty()) else {
        findings.push(at(
            0,
            Finding::about("the policy has no id")
                .suggest("write `@id(\"…\")` before it; decisions and reviews refer to the id"),
        ));
        return None;
    };
    let id = (*id).to_owned();
    let of_policy = |finding: Finding| {
        at(
            0,
            Finding {
                policy: Some(id.clone()),
                ..finding
            },
        )
    };
    check_annotations(&policy, &of_policy, findings);
    let policy = policy.new_id(PolicyId::new(&id));
    let Ok(pst::Policy::Static(body)) = policy.to_pst() else {
        findings.push(of_policy(
            Finding::about("the policy is a template").suggest("write it without `?` slots"),
        ));
        return None;
    };
    let body = body.body().clone();
    let height = height_of(&body);
    if height > settings.max_policy_height {
        findings.push(of_policy(
            Finding::about(format!(
                "the expressions of the policy are nested {height} deep, \
                 {} are allowed so that its evaluation cannot run out of stack",
                settings.max_policy_height
            ))
            .suggest("use a set and `contains` in place of a chain of `||`, or split the policy"),
        ));
    }
    let actions = mentioned_actions(&policy);
    unknown_actions(&actions, vocabulary, &of_policy, findings);
    let scope = match scope_of(statement.text, &body, vocabulary) {
        Ok(scope) => scope,
        Err(finding) => {
            findings.extend(finding.map(|finding| of_policy(*finding)));
            None
        }
    };
    let (canonical, annotations) = match canonical(&policy) {
        Ok(texts) => texts,
        Err(message) => {
            findings.push(of_policy(Finding::about(message)));
            return None;
        }
    };
    let (_, column) = statement.place(0);
    let about = about(&policy, &notes, id.clone(), statement);
    let log_only = notes.get("mode") == Some(&"log_only");
    let scope = scope.filter(|_| findings.len() == before)?;
    Some(LoadedPolicy {
        policy,
        about,
        column,
        scope,
        actions,
        height,
        log_only,
        canonical,
        annotations,
        mentions: Mentions::of(&body),
        body,
    })
}

fn mentioned_actions(policy: &Policy) -> BTreeSet<String> {
    policy
        .entity_literals()
        .into_iter()
        .filter(|literal| literal.type_name().to_string() == "Action")
        .map(|literal| literal.id().unescaped().to_owned())
        .collect()
}

fn unknown_actions(
    actions: &BTreeSet<String>,
    vocabulary: &Vocabulary,
    of_policy: &impl Fn(Finding) -> Finding,
    findings: &mut Vec<Finding>,
) {
    for action in actions.iter().filter(|name| vocabulary.get(name).is_none()) {
        let finding = Finding::about(format!("`Action::\"{action}\"` names no declared tool"));
        findings.push(of_policy(match vocabulary.nearest(action) {
            Some(near) => finding.suggest(format!("did you mean `Action::\"{near}\"`?")),
            None => finding.suggest("declare the tool, or use `Action::\"all tools\"`"),
        }));
    }
}

/// What decides, and what advises, as texts that do not depend on layout.
fn canonical(policy: &Policy) -> Result<(String, String), String> {
    let mut json = policy.to_json().map_err(|error| error.to_string())?;
    let annotations = json
        .as_object_mut()
        .and_then(|object| object.remove("annotations"));
    Ok((
        json.to_string(),
        annotations.map(|json| json.to_string()).unwrap_or_default(),
    ))
}

fn about(
    policy: &Policy,
    notes: &BTreeMap<&str, &str>,
    id: String,
    statement: &Statement<'_>,
) -> PolicyRef {
    let note = |key: &str| {
        let value = notes.get(key).filter(|value| !value.is_empty());
        value.map(|value| (*value).to_owned())
    };
    let (line, _) = statement.place(0);
    PolicyRef {
        title: note("title"),
        why: note("why"),
        owner: note("owner"),
        notify: note("notify"),
        severity: note("severity"),
        effect: match policy.effect() {
            cedar_policy::Effect::Permit => Effect::Permit,
            cedar_policy::Effect::Forbid => Effect::Forbid,
        },
        file: statement.source.name.clone(),
        line,
        id,
    }
}

fn parse_findings(
    errors: &ParseErrors,
    at: &impl Fn(usize, Finding) -> Finding,
    findings: &mut Vec<Finding>,
) {
    for error in errors.iter() {
        let label = error.labels().and_then(|mut labels| labels.next());
        let offset = label.as_ref().map_or(0, miette::LabeledSpan::offset);
        // What would have been right stands in the label.
        let expected = label.as_ref().and_then(|label| label.label());
        let remedy = error.help().map(|help| help.to_string());
        let remedy = remedy.or_else(|| expected.map(str::to_owned));
        let finding = Finding {
            length: label.as_ref().map_or(0, miette::LabeledSpan::len),
            ..Finding::about(lower(&error.to_string()))
        };
        findings.push(at(
            offset,
            match remedy {
                Some(remedy) => finding.suggest(remedy),
                None => finding,
            },
        ));
    }
}

/// Cedar's own messages, in the house style: lower case at the start.
pub(crate) fn lower(message: &str) -> String {
    let mut chars = message.trim_end_matches('.').chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

fn check_annotations(
    policy: &Policy,
    of_policy: &impl Fn(Finding) -> Finding,
    findings: &mut Vec<Finding>,
) {
    for (key, value) in policy.annotations() {
        if !ANNOTATIONS.contains(&key) {
            let finding = Finding::about(format!("`@{key}` is not an annotation of agentkit"));
            findings.push(of_policy(match nearest(key, ANNOTATIONS.into_iter()) {
                Some(near) => finding.suggest(format!("did you mean `@{near}`?")),
                None => finding.suggest(format!("use one of {}", ANNOTATIONS.join(", "))),
            }));
        } else if key == "mode" && value != "log_only" {
            findings.push(of_policy(
                Finding::about(format!("`{value}` is not a mode"))
                    .suggest("write `@mode(\"log_only\")`, or leave the annotation out"),
            ));
        }
    }
}

/// The scope, or why there is none (an unknown action is reported elsewhere).
fn scope_of(
    text: &str,
    body: &pst::Template,
    vocabulary: &Vocabulary,
) -> Result<Option<Scope>, Option<Box<Finding>>> {
    let names = |uids: &[pst::EntityUID]| -> BTreeSet<String> {
        uids.iter().map(|uid| uid.eid.to_string()).collect()
    };
    let refuse = |finding: Finding| Err(Some(Box::new(finding)));
    if body.effect == pst::Effect::Forbid {
        return Ok(Some(match &body.action {
            ActionConstraint::Any => Scope::ForbidAll,
            ActionConstraint::Eq(uid) => {
                let name = uid.eid.to_string();
                if matches!(
                    vocabulary.get(&name),
                    Some(Named::Group(_) | Named::Spanning)
                ) {
                    return refuse(never_equal(&name));
                }
                Scope::ForbidOne(name)
            }
            ActionConstraint::In(uids) => Scope::ForbidIn(names(uids)),
        }));
    }
    let one_question = "a permit names exactly one question: write `action == Action::\"T\"` for \
                        calls that run alone, `Action::\"T with approval\"` or \
                        `Action::\"approve T\"`, or a list of actions of one question";
    let actions = match &body.action {
        ActionConstraint::Any => {
            return refuse(
                Finding::about("the permit answers all three questions at once")
                    .suggest(one_question),
            );
        }
        ActionConstraint::Eq(uid) => {
            let name = uid.eid.to_string();
            if matches!(
                vocabulary.get(&name),
                Some(Named::Group(_) | Named::Spanning)
            ) {
                return refuse(never_equal(&name));
            }
            BTreeSet::from([name])
        }
        ActionConstraint::In(uids) => names(uids),
    };
    let single = is_single_in(text);
    let mut question = None;
    for action in &actions {
        let own =
            match vocabulary.get(action) {
                None => return Err(None),
                Some(Named::Spanning) => {
                    return refuse(Finding::about(format!(
                    "the permit names the group `Action::\"{action}\"`, which spans questions"
                ))
                .suggest(format!(
                    "name `Action::\"{action} unattended\"`, \
                         `Action::\"{action} with approval\"` or `Action::\"approve {action}\"`"
                )));
                }
                Some(Named::Tool(Question::Unattended)) if single => {
                    return refuse(
                        Finding::about(format!(
                            "`action in Action::\"{action}\"` spans questions: \
                         `Action::\"{action} with approval\"` is in it"
                        ))
                        .suggest(format!("write `action == Action::\"{action}\"`")),
                    );
                }
                Some(Named::Tool(own) | Named::Group(own)) => own,
            };
        if question.is_some_and(|question| question != own) {
            return refuse(
                Finding::about("the permit names actions of different questions")
                    .suggest("write one permit for each question"),
            );
        }
        question = Some(own);
    }
    match question {
        Some(question) => Ok(Some(Scope::Permit { question, actions })),
        None => refuse(Finding::about("the permit names no action").suggest(one_question)),
    }
}

fn never_equal(group: &str) -> Finding {
    Finding::about(format!(
        "`Action::\"{group}\"` is a group, and no call's action equals it"
    ))
    .suggest(format!("write `action in Action::\"{group}\"`"))
}

/// `action in X`, as opposed to `action in [X]`: Cedar's own trees do not tell the two apart.
fn is_single_in(text: &str) -> bool {
    let mut code = String::new();
    for part in code_of(text) {
        code.extend(part.split_whitespace());
        code.push(' ');
    }
    code.contains("actioninAction::")
}

fn height_of(body: &pst::Template) -> usize {
    // Several clauses are joined by `&&`, which adds a level for each.
    let clauses = body.clauses();
    clauses
        .iter()
        .map(|clause| match clause {
            Clause::When(expr) => height(expr),
            Clause::Unless(expr) => height(expr).saturating_add(1),
        })
        .max()
        .unwrap_or(0)
        .saturating_add(clauses.len())
}

fn height(expr: &Expr) -> usize {
    let children = match expr {
        Expr::Literal(_) | Expr::Var(_) | Expr::Slot(_) => 0,
        Expr::UnaryOp { expr, .. } | Expr::GetAttr { expr, .. } | Expr::Like { expr, .. } => {
            height(expr)
        }
        // `a has b.c.d` is a chain of tests on a chain of accesses.
        Expr::HasAttr { expr, attrs } => height(expr).saturating_add(2 * attrs.len()),
        Expr::BinaryOp { left, right, .. } => height(left).max(height(right)),
        Expr::Is { expr, in_expr, .. } => height(expr)
            .max(in_expr.as_ref().map_or(0, |expr| height(expr)))
            .saturating_add(1),
        Expr::IfThenElse {
            cond,
            then_expr,
            else_expr,
        } => height(cond).max(height(then_expr)).max(height(else_expr)),
        Expr::Set(items) => items.iter().map(|item| height(item)).max().unwrap_or(0),
        Expr::Record(items) => items.values().map(|item| height(item)).max().unwrap_or(0),
        // What a later Cedar adds cannot be measured here, so it does not load.
        _ => return usize::MAX,
    };
    children.saturating_add(1)
}
