//! What the questions of a suite reach: policies, their clauses, and the answers.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{EvalResult, Expression, PolicyId, eval_expression};
use serde::Serialize;

use crate::decision::Question;
use crate::explain::conjuncts;
use crate::heard::Heard;
use crate::set::{PolicySet, on_stack};
use crate::slice::Slice;

/// How much of a policy set a suite reaches, in three figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Policies that brought an answer about.
    pub policies: Figure,
    /// Parts joined by `&&` (scope included), each seen true and seen false. A part counts only
    /// where all parts before it hold, as Cedar evaluates them.
    pub clauses: Figure,
    /// Tool, question and answer (`permitted`, `forbidden`, `refused` by default), as far as the
    /// policies can give the answer at all.
    pub questions: Figure,
}

/// How many of how many, and which are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Number that is reached.
    pub covered: usize,
    /// Number of all.
    pub total: usize,
    /// In per cent, rounded down; 100 where there is nothing to reach.
    pub percent: u32,
    /// What is not reached.
    pub uncovered: Vec<String>,
}

impl Figure {
    fn of(all: impl IntoIterator<Item = (String, bool)>) -> Self {
        let mut figure = Self::default();
        for (name, covered) in all {
            figure.total += 1;
            if covered {
                figure.covered += 1;
            } else {
                figure.uncovered.push(name);
            }
        }
        figure.percent = (figure.covered * 100)
            .checked_div(figure.total)
            .map_or(100, |percent| u32::try_from(percent).unwrap_or(100));
        figure
    }
}

impl Coverage {
    /// The least of the three figures, in per cent.
    pub fn least(&self) -> u32 {
        self.policies
            .percent
            .min(self.clauses.percent)
            .min(self.questions.percent)
    }
}

/// A policy of the set in force, with its parts.
struct Watched {
    parts: Vec<Part>,
    matched: bool,
}

struct Part {
    text: String,
    expression: Option<Expression>,
    seen_true: bool,
    seen_false: bool,
}

/// Measures what was heard.
pub(crate) fn measure(set: &PolicySet, heard: &[Heard]) -> Coverage {
    let mut watched: BTreeMap<&str, Watched> = set
        .policies
        .iter()
        .filter(|(id, _)| !is_shadow(set, id))
        .map(|(id, held)| {
            let parts = conjuncts(&held.body).into_iter().map(|text| Part {
                expression: text.parse().ok(),
                text,
                seen_true: false,
                seen_false: false,
            });
            let watched = Watched {
                parts: parts.collect(),
                matched: false,
            };
            (id.as_str(), watched)
        })
        .collect();
    let mut answers: BTreeSet<(&str, Question, &str)> = BTreeSet::new();
    for question in heard {
        answers.insert((&question.tool, question.question, answer_of(question)));
        let Some(slice) = set.slices.get(&question.tool) else {
            continue;
        };
        for policy in slice.asked(question.question).policies.policies() {
            let id = policy.id().to_string();
            if let Some(watched) = watched.get_mut(id.as_str()) {
                watched.matched |= question.reasons.contains(&id);
                on_stack(slice, || watched.look(question));
            }
        }
    }
    Coverage {
        policies: Figure::of(
            watched
                .iter()
                .map(|(id, watched)| (format!("policy `{id}` never decides"), watched.matched)),
        ),
        clauses: Figure::of(watched.iter().flat_map(|(id, watched)| {
            watched.parts.iter().flat_map(move |part| {
                [(part.seen_true, "true"), (part.seen_false, "false")].map(|(seen, what)| {
                    (format!("policy `{id}`: never {what}: {}", part.text), seen)
                })
            })
        })),
        questions: Figure::of(set.slices.iter().flat_map(|(tool, slice)| {
            possible(slice)
                .into_iter()
                .map(|(question, answer)| {
                    let name = format!("tool `{tool}`: {question} is never {answer}");
                    (name, answers.contains(&(tool.as_str(), question, answer)))
                })
                .collect::<Vec<_>>()
        })),
    }
}

/// True for a policy that is only evaluated in the shadow of the others.
pub(crate) fn is_shadow(set: &PolicySet, id: &str) -> bool {
    let id = PolicyId::new(id);
    // What no tool's slice holds never decides, and is worth to be listed.
    let mut shadow = false;
    for slice in set.slices.values() {
        for question in Question::ALL {
            let asked = slice.asked(question);
            if asked.policies.policy(&id).is_some() {
                return false;
            }
            shadow |= asked
                .with_shadow
                .as_ref()
                .is_some_and(|all| all.policy(&id).is_some());
        }
    }
    shadow
}

impl Watched {
    /// Evaluates the parts in order up to the first that does not hold.
    fn look(&mut self, question: &Heard) {
        for part in &mut self.parts {
            let Some(expression) = &part.expression else {
                return;
            };
            match eval_expression(&question.request, &question.entities, expression) {
                Ok(EvalResult::Bool(true)) => part.seen_true = true,
                Ok(EvalResult::Bool(false)) => {
                    part.seen_false = true;
                    return;
                }
                _ => return,
            }
        }
    }
}

fn answer_of(question: &Heard) -> &'static str {
    if question.permitted {
        "permitted"
    } else if question.forbidden {
        "forbidden"
    } else {
        "refused"
    }
}

/// The answers that the policies of a tool can give, as far as their form tells.
fn possible(slice: &Slice) -> Vec<(Question, &'static str)> {
    let mut all = Vec::new();
    let mut attended = true;
    for question in Question::ALL {
        let asked = slice.asked(question);
        let mut permits = false;
        let mut always = false;
        let mut forbids = false;
        let mut never = false;
        for policy in asked.policies.policies() {
            let unconditional = policy
                .to_pst()
                .is_ok_and(|policy| conjuncts(policy.body()).is_empty());
            // A forbid of the unattended question has ended the matter before this one is put.
            let decided_before = question == Question::Approved
                && slice
                    .asked(Question::Unattended)
                    .policies
                    .policy(policy.id())
                    .is_some();
            match policy.effect() {
                cedar_policy::Effect::Permit => {
                    permits = true;
                    always |= unconditional;
                }
                cedar_policy::Effect::Forbid => {
                    forbids |= !decided_before;
                    never |= unconditional;
                }
            }
        }
        if question == Question::Approved && !attended {
            continue;
        }
        if permits && !never {
            all.push((question, "permitted"));
        }
        if forbids {
            all.push((question, "forbidden"));
        }
        if !always && !never {
            all.push((question, "refused"));
        }
        if question == Question::Unattended {
            attended = !always && !never;
        }
    }
    all
}
