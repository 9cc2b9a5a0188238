//! What stands in the parentheses of `#[tool(…)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Expr, Ident, LitInt, LitStr, Type, ext::IdentExt as _};

use super::model::{Approval, Fact};
use crate::{
    name,
    options::{self, Entry, EntryValue},
    problems::Problems,
    ttl,
};

const KEYS: [&str; 12] = [
    "name",
    "type",
    "require_approval",
    "suspend",
    "resume",
    "read_only",
    "destructive",
    "idempotent",
    "timeout",
    "labels",
    "facts",
    "crate",
];

/// The options of a tool.
pub(super) struct Options {
    /// `name = "…"`.
    pub(super) name: Option<LitStr>,
    /// `type = Name`.
    pub(super) type_name: Option<Ident>,
    /// `require_approval …`.
    pub(super) approval: Option<Approval>,
    /// `suspend = Type`.
    pub(super) suspend: Option<Type>,
    /// `resume = Type`.
    pub(super) resume: Option<Type>,
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    pub(super) idempotent: bool,
    /// `timeout = "30s"`.
    pub(super) timeout_seconds: Option<u64>,
    /// `labels = ["…"]`.
    pub(super) labels: Vec<LitStr>,
    /// `facts(name = function)`.
    pub(super) facts: Vec<Fact>,
    /// The path to `agentkit`.
    pub(super) root: TokenStream,
}

/// Reads the options; problems do not keep the other options from being read.
pub(super) fn read(list: TokenStream, problems: &mut Problems) -> Options {
    let entries = options::entries(list, "#[tool]", &KEYS, problems);
    let find = |key: &str| entries.iter().find(|entry| entry.key.unraw() == key);
    let mut options = Options {
        name: None,
        type_name: None,
        approval: None,
        suspend: None,
        resume: None,
        read_only: false,
        destructive: false,
        idempotent: false,
        timeout_seconds: None,
        labels: Vec::new(),
        facts: Vec::new(),
        root: options::root(find("crate"), problems),
    };
    options.name = find("name").and_then(|entry| tool_name(entry, problems));
    options.type_name = find("type").and_then(|entry| entry.value("Name", problems));
    options.approval = find("require_approval").map(|entry| approval(entry, problems));
    options.suspend = find("suspend").and_then(|entry| entry.value("Type", problems));
    options.resume = find("resume").and_then(|entry| entry.value("Type", problems));
    let mut flag = |key| find(key).is_some_and(|entry| entry.flag(problems));
    options.read_only = flag("read_only");
    options.destructive = flag("destructive");
    options.idempotent = flag("idempotent");
    options.timeout_seconds = find("timeout").and_then(|entry| ttl::of(entry, "30s", problems));
    options.labels = find("labels").map_or_else(Vec::new, |entry| labels(entry, problems));
    options.facts = find("facts").map_or_else(Vec::new, |entry| facts(entry, problems));
    pair(&entries, problems);
    if options.read_only && options.destructive {
        let entry = find("destructive").map_or_else(|| quote!(), |entry| quote!(#entry));
        problems.add(
            entry,
            "a tool that is `read_only` cannot be `destructive`",
            "remove one of the two",
        );
    }
    options
}

/// A question without an answer, or the other way round.
fn pair(entries: &[Entry], problems: &mut Problems) {
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    match (find("suspend"), find("resume")) {
        (Some(suspend), None) => problems.add(
            &suspend.key,
            "a tool that suspends needs a type for the answer",
            "add `resume = Type`",
        ),
        (None, Some(resume)) => problems.add(
            &resume.key,
            "a tool that is resumed needs a type for the question",
            "add `suspend = Type`",
        ),
        _ => {}
    }
}

fn tool_name(entry: &Entry, problems: &mut Problems) -> Option<LitStr> {
    let literal: LitStr = entry.value("\"name\"", problems)?;
    let name = literal.value();
    if !name::is_accepted(&name) {
        problems.add(
            &literal,
            &format!("`{name}` is no name for a tool that model providers accept"),
            name::RULE,
        );
    }
    Some(literal)
}

const APPROVAL_FORMS: &str = "write `require_approval`, `require_approval = false`, \
                              `require_approval = \"why\"` or `require_approval(when = |args| …, \
                              ttl = \"24h\", quorum = 2, why = \"…\")`";

fn approval(entry: &Entry, problems: &mut Problems) -> Approval {
    let mut approval = Approval {
        required: true,
        ..Approval::default()
    };
    match &entry.value {
        EntryValue::None => {}
        EntryValue::Assigned(value) => match syn::parse2(value.clone()) {
            Ok(syn::Lit::Bool(flag)) => approval.required = flag.value,
            Ok(syn::Lit::Str(why)) => approval.why = Some(reason(&why, problems)),
            _ => problems.add(
                value,
                "`require_approval` takes `true`, `false` or the reason as a string",
                APPROVAL_FORMS,
            ),
        },
        EntryValue::List(list) => {
            let keys = ["when", "ttl", "quorum", "why"];
            for entry in options::entries(list.clone(), "require_approval", &keys, problems) {
                approval_detail(&entry, &mut approval, problems);
            }
        }
    }
    approval
}

fn approval_detail(entry: &Entry, approval: &mut Approval, problems: &mut Problems) {
    if entry.key == "when" {
        approval.when = entry
            .value::<Expr>("|args| args.amount_cents > 5000", problems)
            .map(|condition| condition.to_token_stream());
    } else if entry.key == "ttl" {
        approval.ttl_seconds = ttl::of(entry, "24h", problems);
    } else if entry.key == "quorum" {
        let Some(literal) = entry.value::<LitInt>("2", problems) else {
            return;
        };
        match literal.base10_parse::<u32>() {
            Ok(quorum) if quorum > 0 => approval.quorum = quorum,
            _ => problems.add(
                &literal,
                "a quorum is a number of people, at least 1",
                "write `quorum = 2` for two people",
            ),
        }
    } else if let Some(why) = entry.value::<LitStr>("\"why\"", problems) {
        approval.why = Some(reason(&why, problems));
    }
}

fn labels(entry: &Entry, problems: &mut Problems) -> Vec<LitStr> {
    let list = options::bracketed(entry, "\"money\"", problems).unwrap_or_default();
    let mut labels: Vec<LitStr> = Vec::new();
    for label in options::split(list) {
        match syn::parse2::<LitStr>(label.clone()) {
            Ok(label) if label.value().trim().is_empty() => {
                problems.add(
                    &label,
                    "the label is empty",
                    "write a word, such as `\"money\"`",
                );
            }
            Ok(label)
                if labels
                    .iter()
                    .any(|earlier| earlier.value() == label.value()) =>
            {
                problems.add(
                    &label,
                    &format!("the label `{}` stands here twice", label.value()),
                    "write it once",
                );
            }
            Ok(label) => labels.push(label),
            Err(_) => problems.add(
                label,
                "a label is a string",
                "write `labels = [\"money\", \"eu\"]`",
            ),
        }
    }
    labels
}

fn facts(entry: &Entry, problems: &mut Problems) -> Vec<Fact> {
    let EntryValue::List(list) = &entry.value else {
        problems.add(
            entry,
            "`facts` takes a list in parentheses",
            "write `facts(total_cents = |args| …)`; a policy refers to it by its name",
        );
        return Vec::new();
    };
    let mut facts: Vec<Fact> = Vec::new();
    for entry in options::any_entries(list.clone(), problems) {
        let name = entry.key.unraw().to_string();
        if facts.iter().any(|earlier| earlier.name.value() == name) {
            problems.add(
                &entry.key,
                &format!("the fact `{name}` stands here twice"),
                "write it once",
            );
            continue;
        }
        if let Some(derivation) = entry.value::<Expr>("|args| …", problems) {
            facts.push(Fact {
                name: LitStr::new(&name, entry.key.span()),
                derivation: derivation.to_token_stream(),
            });
        }
    }
    facts
}

fn reason(literal: &LitStr, problems: &mut Problems) -> String {
    let reason = literal.value();
    if reason.trim().is_empty() {
        problems.add(
            literal,
            "the reason is empty",
            "say why a person has to approve, or write `require_approval` alone",
        );
    }
    reason
}
