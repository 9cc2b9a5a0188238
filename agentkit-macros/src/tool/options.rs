//! What stands in the parentheses of `#[tool(…)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, LitInt, LitStr, Type, ext::IdentExt as _};

use super::model::Approval;
use crate::{
    name,
    options::{self, Entry, EntryValue},
    problems::Problems,
    ttl,
};

const KEYS: [&str; 9] = [
    "name",
    "type",
    "require_approval",
    "suspend",
    "resume",
    "read_only",
    "destructive",
    "idempotent",
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
                              `require_approval = \"why\"` or `require_approval(ttl = \"24h\", \
                              quorum = 2, why = \"…\")`";

fn approval(entry: &Entry, problems: &mut Problems) -> Approval {
    let mut approval = Approval {
        required: true,
        why: None,
        quorum: 1,
        ttl_seconds: None,
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
            let keys = ["ttl", "quorum", "why"];
            for entry in options::entries(list.clone(), "require_approval", &keys, problems) {
                approval_detail(&entry, &mut approval, problems);
            }
        }
    }
    approval
}

fn approval_detail(entry: &Entry, approval: &mut Approval, problems: &mut Problems) {
    if entry.key == "ttl" {
        let Some(literal) = entry.value::<LitStr>("\"24h\"", problems) else {
            return;
        };
        approval.ttl_seconds = ttl::seconds(&literal.value());
        if approval.ttl_seconds.is_none() {
            let message = format!("`{}` is no duration", literal.value());
            problems.add(&literal, &message, ttl::FORM);
        }
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
