//! From the tree of a test file to cases.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::attribute::AttributeType;
use crate::call::{Approvals, User};
use crate::declaration::Settings;
use crate::load_error::{Finding, LoadError};
use crate::provider::Provided;
use crate::tool::nearest;

use super::case::{Case, Equivalent};
use super::document::{Fields, Kind, Node, Place, Reader, parse};
use super::expect;
use super::facts;
use super::invariant::{self, Invariant};
use super::time::{instant, span};

const FILE: [&str; 14] = [
    "tools",
    "policies",
    "settings",
    "now",
    "agent",
    "users",
    "cases",
    "cedar",
    "equivalent",
    "invariants",
    "title",
    "session",
    "entities",
    "app",
];

const CASE: [&str; 23] = [
    "name",
    "user",
    "call",
    "args",
    "now",
    "agent",
    "run",
    "step",
    "approved_by",
    "requested_at",
    "demanded",
    "expect",
    "by",
    "release",
    "release_by",
    "may_approve",
    "may_not_approve",
    "errors",
    "session",
    "derived",
    "entities",
    "app",
    "columns",
];

/// Fields of a table's case; `rows` is not a field of the case that a row makes.
const TABLE: [&str; 24] = {
    let mut all = [""; 24];
    let mut index = 0;
    while index < CASE.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            all[index] = CASE[index];
        }
        index += 1;
    }
    #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
    {
        all[CASE.len()] = "rows";
    }
    all
};

/// A test file, read and checked, with its paths resolved.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) tools: Vec<PathBuf>,
    pub(crate) policies: Vec<PathBuf>,
    pub(crate) cedar: Vec<PathBuf>,
    pub(crate) settings: Settings,
    pub(crate) cases: Vec<Case>,
    pub(crate) equivalents: Vec<Equivalent>,
    pub(crate) invariants: Vec<Invariant>,
}

/// Reads the text of a test file. Paths in it are relative to `folder`.
pub(crate) fn document(file: &str, text: &str, folder: &Path) -> Result<Document, LoadError> {
    let root = parse(file, text).map_err(|finding| LoadError::new(vec![*finding]))?;
    let mut reader = Reader::new(file);
    let document = read(&mut reader, &root, folder);
    if reader.findings.is_empty() {
        Ok(document)
    } else {
        reader.findings.sort_by_key(|f| (f.line, f.column));
        Err(LoadError::new(reader.findings))
    }
}

fn read(reader: &mut Reader<'_>, root: &Node, folder: &Path) -> Document {
    let fields = reader.fields("a test file", root, &FILE);
    let mut paths = |name: &str, demanded: Option<&str>| -> Vec<PathBuf> {
        match (fields.get(name), demanded) {
            (Some(node), _) => reader
                .texts(name, node)
                .into_iter()
                .map(|(_, path)| folder.join(path))
                .collect(),
            (None, Some(remedy)) => {
                reader.complain(fields.at, format!("`{name}` is missing"), remedy);
                Vec::new()
            }
            (None, None) => Vec::new(),
        }
    };
    let tools = paths("tools", Some("name the JSON file of the tools"));
    let policies = paths("policies", Some("name the Cedar files, or their folder"));
    let cedar = paths("cedar", None);
    let settings = fields
        .get("settings")
        .map_or_else(Settings::default, |node| settings(reader, node));
    let users = fields
        .get("users")
        .map(|node| users(reader, node))
        .unwrap_or_default();
    let defaults = Defaults {
        now: fields
            .get("now")
            .and_then(|node| moment(reader, "now", node, 0)),
        agent: fields
            .get("agent")
            .and_then(|node| reader.text("agent", node))
            .unwrap_or_else(|| "agent".to_owned()),
        users,
        settings: settings.clone(),
        session: fields.get("session").cloned(),
        provided: facts::provided(reader, fields),
    };
    let mut cases = Vec::new();
    if let Some(node) = fields.get("cases") {
        for item in list(reader, "cases", node) {
            table(reader, item, &defaults, &mut cases);
        }
    }
    let mut equivalents = Vec::new();
    if let Some(node) = fields.get("equivalent") {
        for item in list(reader, "equivalent", node) {
            equivalents.extend(equivalent(reader, item));
        }
    }
    let mut invariants = Vec::new();
    if let Some(node) = fields.get("invariants") {
        for item in list(reader, "invariants", node) {
            invariants.extend(invariant::read(reader, item));
        }
    }
    unique(reader, &cases);
    Document {
        tools,
        policies,
        cedar,
        settings,
        cases,
        equivalents,
        invariants,
    }
}

/// What the cases of a file have in common.
pub(crate) struct Defaults {
    now: Option<i64>,
    agent: String,
    users: BTreeMap<String, User>,
    settings: Settings,
    session: Option<Node>,
    provided: Option<Provided>,
}

fn list<'n>(reader: &mut Reader<'_>, field: &str, node: &'n Node) -> &'n [Node] {
    match &node.kind {
        Kind::List(items) => items,
        Kind::Null => &[],
        _ => {
            reader.complain(
                node.at,
                format!("`{field}` is {}, not a list", node.shown()),
                "write its entries one below the other, each with `- ` before it",
            );
            &[]
        }
    }
}

fn unique(reader: &mut Reader<'_>, cases: &[Case]) {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    for case in cases {
        if let Some(first) = seen.insert(&case.name, case.at) {
            reader.complain(
                case.at,
                format!(
                    "the name `{}` is taken by the case in line {}",
                    case.name, first.line
                ),
                "give each case a name of its own",
            );
        }
    }
}

fn settings(reader: &mut Reader<'_>, node: &Node) -> Settings {
    const FIELDS: [&str; 5] = [
        "user_attributes",
        "max_quorum",
        "max_approval_age",
        "facts",
        "extension",
    ];
    let fields = reader.fields("the settings", node, &FIELDS);
    let mut settings = Settings::default();
    if let Some(node) = fields.get("max_quorum")
        && let Some(number) = reader.whole("max_quorum", node)
    {
        settings.max_quorum = number;
    }
    if let Some(node) = fields.get("max_approval_age") {
        match node
            .as_text()
            .and_then(span)
            .and_then(|s| u64::try_from(s).ok())
        {
            Some(micros) => settings.max_approval_age = std::time::Duration::from_micros(micros),
            None => reader.complain(
                node.at,
                format!("`max_approval_age` is {}", node.shown()),
                "write a duration such as `24h` or `30d`",
            ),
        }
    }
    if let Some(node) = fields.get("facts") {
        settings.facts = facts::typed(reader, "facts", node).unwrap_or_default();
    }
    if let Some(node) = fields.get("extension") {
        settings.extension = facts::typed(reader, "extension", node).unwrap_or_default();
    }
    if let Some(node) = fields.get("user_attributes") {
        let Kind::Map(entries) = &node.kind else {
            reader.complain(
                node.at,
                "`user_attributes` is not a map",
                "write `department: string`",
            );
            return settings;
        };
        for (key, value) in entries {
            let Some(kind) = facts::typed::<AttributeType>(reader, &key.name, value) else {
                continue;
            };
            settings = settings.user_attribute(&key.name, kind);
        }
    }
    settings
}

fn users(reader: &mut Reader<'_>, node: &Node) -> BTreeMap<String, User> {
    const FIELDS: [&str; 2] = ["roles", "attributes"];
    let Kind::Map(entries) = &node.kind else {
        reader.complain(
            node.at,
            format!("`users` is {}, not a map", node.shown()),
            "write `clara: clerk`, or `clara: {roles: [clerk], attributes: {tenant: acme}}`",
        );
        return BTreeMap::new();
    };
    let mut users = BTreeMap::new();
    for (key, value) in entries {
        let mut user = User::new(&key.name);
        if matches!(value.kind, Kind::Map(_)) {
            let fields = reader.fields("a user", value, &FIELDS);
            if let Some(node) = fields.get("roles") {
                user.roles = reader
                    .texts("roles", node)
                    .into_iter()
                    .map(|(_, r)| r)
                    .collect();
            }
            if let Some(node) = fields.get("attributes") {
                user.attributes = facts::values(reader, "attributes", node);
            }
        } else {
            user.roles = reader
                .texts(&key.name, value)
                .into_iter()
                .map(|(_, r)| r)
                .collect();
        }
        users.insert(key.name.clone(), user);
    }
    users
}

/// A case, or one for each row of its table.
fn table(reader: &mut Reader<'_>, node: &Node, defaults: &Defaults, cases: &mut Vec<Case>) {
    let fields = reader.fields("a case", node, &TABLE);
    let (Some(columns), Some(rows)) = (fields.get("columns"), fields.get("rows")) else {
        for (one, other) in [("columns", "rows"), ("rows", "columns")] {
            if fields.get(one).is_some() {
                reader.complain(
                    node.at,
                    format!("the case has `{one}` and no `{other}`"),
                    "a table has both: `columns: [args.amount, expect, by]` and `rows: [[1, allow, id]]`",
                );
                return;
            }
        }
        cases.extend(case(reader, fields, defaults, None));
        return;
    };
    let columns = reader.texts("columns", columns);
    let rows = list(reader, "rows", rows);
    if rows.is_empty() {
        reader.complain(
            node.at,
            "the table has no rows",
            "add a row, or remove the case",
        );
    }
    let Kind::Map(entries) = &node.kind else {
        return;
    };
    let shared: Vec<_> = entries
        .iter()
        .filter(|(key, _)| !["columns", "rows"].contains(&key.name.as_str()))
        .cloned()
        .collect();
    for row in rows {
        let Kind::List(cells) = &row.kind else {
            reader.complain(row.at, "the row is not a list", "write `- [1, allow, id]`");
            continue;
        };
        if cells.len() != columns.len() {
            reader.complain(
                row.at,
                format!(
                    "the row has {} cells and the table {} columns",
                    cells.len(),
                    columns.len()
                ),
                "write a cell for each column; `~` leaves a field out",
            );
            continue;
        }
        let mut made = Node {
            at: row.at,
            kind: Kind::Map(shared.clone()),
        };
        let mut label = Vec::new();
        for ((at, column), cell) in columns.iter().zip(cells) {
            if matches!(cell.kind, Kind::Null) {
                continue;
            }
            let path: Vec<&str> = column.split('.').collect();
            if let Err(message) = made.put(&path, cell.clone(), *at) {
                reader.complain(cell.at, message, "let the column name a field of a map");
            }
            if !["expect", "by", "release", "release_by", "errors"].contains(&column.as_str()) {
                let short = column.strip_prefix("args.").unwrap_or(column);
                label.push(format!("{short} {}", cell.to_json()));
            }
        }
        let fields = reader.fields("a case", &made, &CASE);
        cases.extend(case(reader, fields, defaults, Some(label.join(", "))));
    }
}

fn case(
    reader: &mut Reader<'_>,
    fields: Fields<'_>,
    defaults: &Defaults,
    label: Option<String>,
) -> Option<Case> {
    let before = reader.findings.len();
    let mut text = |name: &str| fields.get(name).and_then(|node| reader.text(name, node));
    let name = text("name");
    let tool = text("call");
    let agent = text("agent").unwrap_or_else(|| defaults.agent.clone());
    let run = text("run").unwrap_or_else(|| "test".to_owned());
    if tool.is_none() && fields.get("call").is_none() {
        reader.complain(
            fields.at,
            "the case has no `call`",
            "name the tool that is called",
        );
    }
    let user = match fields.get("user") {
        Some(node) => person(reader, "user", node, defaults),
        None => {
            reader.complain(
                fields.at,
                "the case has no `user`",
                "say on whose behalf the call is made",
            );
            None
        }
    };
    let step = fields
        .get("step")
        .and_then(|node| reader.whole("step", node));
    let now = match fields.get("now") {
        Some(node) => moment(reader, "now", node, defaults.now.unwrap_or(0)),
        None => defaults.now,
    };
    if now.is_none() && fields.get("now").is_none() {
        reader.complain(
            fields.at,
            "neither the case nor the file says when `now` is",
            "write `now: 2026-03-01T12:00:00Z` at the top of the file",
        );
    }
    let now = now.unwrap_or(0);
    let arguments = fields
        .get("args")
        .map_or_else(|| Value::Object(serde_json::Map::new()), Node::to_json);
    let session = facts::session(
        reader,
        [defaults.session.as_ref(), fields.get("session")],
        &defaults.settings,
        (&run, &agent, now),
    );
    let derived = fields
        .get("derived")
        .map(|node| facts::values(reader, "derived", node));
    let provided = facts::provided(reader, fields).or_else(|| defaults.provided.clone());
    let approvals = approvals(reader, fields, defaults, now);
    let expected = expect::read(reader, fields, defaults);
    if reader.findings.len() > before {
        return None;
    }
    let tool = tool?;
    let base = name.unwrap_or_else(|| tool.clone());
    Some(Case {
        name: match label {
            Some(label) if !label.is_empty() => format!("{base} ({label})"),
            _ => base,
        },
        at: fields.at,
        tool,
        arguments,
        user: user?,
        agent,
        run,
        step: step.unwrap_or(0),
        now,
        session,
        derived,
        provided,
        approvals,
        outcome: expected.outcome,
        release: expected.release,
        approvers: expected.approvers,
        errors: expected.errors,
    })
}

fn person(reader: &mut Reader<'_>, field: &str, node: &Node, defaults: &Defaults) -> Option<User> {
    let name = reader.text(field, node)?;
    known(reader, node.at, &name, defaults)
}

/// One of the file's users.
pub(crate) fn known(
    reader: &mut Reader<'_>,
    at: Place,
    name: &str,
    defaults: &Defaults,
) -> Option<User> {
    let found = defaults.users.get(name).cloned();
    if found.is_none() {
        let near = nearest(name, defaults.users.keys().map(String::as_str));
        reader.complain(
            at,
            format!("`{name}` is not one of the file's `users`"),
            near.map_or_else(
                || format!("add `{name}: [role]` to `users`"),
                |near| format!("did you mean `{near}`?"),
            ),
        );
    }
    found
}

fn moment(reader: &mut Reader<'_>, field: &str, node: &Node, now: i64) -> Option<i64> {
    let read = node.as_text().and_then(|text| instant(text, now));
    if read.is_none() {
        reader.complain(
            node.at,
            format!("`{field}` is {}, not a moment", node.shown()),
            "write `2026-03-01T12:00:00Z`, or `25h ago` in relation to `now`",
        );
    }
    read
}

fn approvals(
    reader: &mut Reader<'_>,
    fields: Fields<'_>,
    defaults: &Defaults,
    now: i64,
) -> Approvals {
    let requested_at = fields
        .get("requested_at")
        .and_then(|node| moment(reader, "requested_at", node, now))
        .unwrap_or(now);
    let mut approvals = Approvals {
        // The settings' limit is the one to test; the caller's own is another matter.
        max_age: std::time::Duration::MAX,
        ..Approvals::requested_at(requested_at)
    };
    if let Some(node) = fields.get("approved_by") {
        for (at, name) in reader.texts("approved_by", node) {
            approvals
                .approvers
                .extend(known(reader, at, &name, defaults));
        }
    }
    if let Some(node) = fields.get("demanded") {
        approvals.demanded_quorum = reader.whole("demanded", node);
    }
    approvals
}

fn equivalent(reader: &mut Reader<'_>, node: &Node) -> Option<Equivalent> {
    const FIELDS: [&str; 3] = ["policy", "change", "reason"];
    let fields = reader.fields("an explained mutant", node, &FIELDS);
    let mut text = |name: &'static str| match fields.get(name) {
        Some(node) => reader.text(name, node),
        None => {
            reader.complain(
                fields.at,
                format!("the explained mutant has no `{name}`"),
                "copy the entry that `--mutants` printed, and say why no case can notice it",
            );
            None
        }
    };
    let (policy, change, reason) = (text("policy"), text("change"), text("reason"));
    if let Some(reason) = &reason
        && reason.trim().is_empty()
    {
        reader.complain(
            fields.at,
            "the `reason` is empty",
            "say why no case can notice the change",
        );
    }
    Some(Equivalent {
        at: fields.at,
        policy: policy?,
        change: change?,
        reason: reason?,
    })
}

/// A finding that concerns a file as a whole.
pub(crate) fn about_file(path: &Path, message: String, remedy: &str) -> Finding {
    Finding {
        file: Some(path.display().to_string()),
        ..Finding::about(message).suggest(remedy)
    }
}
