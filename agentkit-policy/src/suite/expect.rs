//! What a case expects.

use std::collections::BTreeSet;

use crate::decision::{Outcome, Verdict};

use super::case::{Approver, By};
use super::document::{Fields, Kind, Node, Place, Reader};
use super::read::{Defaults, known};

/// Everything that a case expects.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) outcome: Option<(Outcome, By)>,
    pub(crate) release: Option<(Verdict, By)>,
    pub(crate) approvers: Vec<Approver>,
    pub(crate) errors: Vec<String>,
}

/// Reads what a case expects, which must be something.
pub(crate) fn read(reader: &mut Reader<'_>, fields: Fields<'_>, defaults: &Defaults) -> Expected {
    let mut expected = Expected::default();
    let answer = fields.get("expect").and_then(|node| outcome(reader, node));
    expected.outcome = answer.zip(by(reader, fields, "expect", "by"));
    let release = fields.get("release").and_then(|node| verdict(reader, node));
    expected.release = release.zip(by(reader, fields, "release", "release_by"));
    for (field, may) in [("may_approve", true), ("may_not_approve", false)] {
        if let Some(node) = fields.get(field) {
            people(reader, field, may, node, defaults, &mut expected.approvers);
        }
    }
    if let Some(node) = fields.get("errors") {
        let texts = reader.texts("errors", node);
        expected.errors = texts.into_iter().map(|(_, text)| text).collect();
    }
    let silent = ["expect", "release", "may_approve", "may_not_approve"]
        .iter()
        .all(|field| fields.get(field).is_none());
    if silent {
        reader.complain(
            fields.at,
            "the case expects nothing",
            "add `expect: allow`, `expect: 2 approvals`, `expect: deny`, `may_approve`, \
             `may_not_approve` or `release`",
        );
    }
    expected
}

fn outcome(reader: &mut Reader<'_>, node: &Node) -> Option<Outcome> {
    let text = node.as_text().unwrap_or_default();
    let quorum = text
        .strip_suffix(" approvals")
        .or_else(|| text.strip_suffix(" approval"))
        .and_then(|number| number.parse::<u32>().ok())
        .filter(|quorum| *quorum > 0);
    match (text, quorum) {
        ("allow", _) => Some(Outcome::Allow),
        ("deny", _) => Some(Outcome::Deny),
        (_, Some(quorum)) => Some(Outcome::RequireApproval { quorum }),
        _ => {
            reader.complain(
                node.at,
                format!("`expect` is {}", node.shown()),
                "write `allow`, `deny`, `1 approval` or `2 approvals`",
            );
            None
        }
    }
}

fn verdict(reader: &mut Reader<'_>, node: &Node) -> Option<Verdict> {
    let text = node.as_text().unwrap_or_default();
    let quorum = text
        .strip_prefix("wait for ")
        .and_then(|number| number.parse::<u32>().ok());
    match (text, quorum) {
        ("run", _) => Some(Verdict::Run),
        ("deny", _) => Some(Verdict::Deny),
        (_, Some(quorum)) => Some(Verdict::Wait { quorum }),
        _ => {
            reader.complain(
                node.at,
                format!("`release` is {}", node.shown()),
                "write `run`, `wait for 2` or `deny`",
            );
            None
        }
    }
}

/// The policies that must determine an answer: exact unless `any` is written.
fn by(reader: &mut Reader<'_>, fields: Fields<'_>, of: &str, field: &str) -> Option<By> {
    match (fields.get(of), fields.get(field)) {
        (_, Some(node)) if node.as_text() == Some("any") => Some(By::Any),
        (Some(_), Some(node)) => Some(exactly(reader.texts(field, node))),
        (Some(node), None) => {
            reader.complain(
                node.at,
                format!("`{of}` is expected without `{field}`"),
                format!(
                    "name the policies that bring it about, `{field}: []` for a denial by \
                     default, or `{field}: any`"
                ),
            );
            None
        }
        (None, Some(node)) => {
            reader.complain(
                node.at,
                format!("`{field}` stands without `{of}`"),
                format!("add `{of}`, or remove `{field}`"),
            );
            None
        }
        (None, None) => None,
    }
}

fn exactly(ids: Vec<(Place, String)>) -> By {
    By::Exactly(ids.into_iter().map(|(_, id)| id).collect::<BTreeSet<_>>())
}

/// `[fiona, max]`, or `{fiona: policy, clara: [policy]}` where the policies are expected too.
fn people(
    reader: &mut Reader<'_>,
    field: &str,
    may: bool,
    node: &Node,
    defaults: &Defaults,
    approvers: &mut Vec<Approver>,
) {
    if let Kind::Map(entries) = &node.kind {
        for (key, value) in entries {
            let by = if value.as_text() == Some("any") {
                By::Any
            } else {
                exactly(reader.texts(&key.name, value))
            };
            if let Some(user) = known(reader, key.at, &key.name, defaults) {
                approvers.push(Approver { user, may, by });
            }
        }
        return;
    }
    for (at, name) in reader.texts(field, node) {
        if let Some(user) = known(reader, at, &name, defaults) {
            approvers.push(Approver {
                user,
                may,
                by: By::Any,
            });
        }
    }
}
