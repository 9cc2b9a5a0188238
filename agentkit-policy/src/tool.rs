//! A declared tool with its shape: the Cedar schema of its three actions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::decision::Question;
use crate::declaration::{Settings, ToolDeclaration};
use crate::load_error::Finding;
use crate::provider::Extension;
use crate::shape::{Names, RecordShape, Shape, input_shape, quoted};

/// Longest name of a tool, in bytes.
const MAX_NAME: usize = 256;

/// A group of tools that policies may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    All,
    ReadOnly,
    Destructive,
}

impl Group {
    pub(crate) const ALL: [Self; 3] = [Self::All, Self::ReadOnly, Self::Destructive];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all tools",
            Self::ReadOnly => "read-only tools",
            Self::Destructive => "destructive tools",
        }
    }

    /// The group whose direct members are the unattended actions, so that a permit can name it.
    pub(crate) fn unattended(self) -> String {
        format!("{} unattended", self.name())
    }

    fn holds(self, tool: &ToolDeclaration) -> bool {
        match self {
            Self::All => true,
            Self::ReadOnly => tool.read_only,
            Self::Destructive => tool.destructive,
        }
    }
}

/// What an action that a policy names stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// The action of one tool.
    Tool(Question),
    /// A group whose members all put the same question.
    Group(Question),
    /// A group whose members put different questions.
    Spanning,
}

/// The actions that policies may name, over all tools.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    actions: BTreeMap<String, Named>,
}

impl Vocabulary {
    pub(crate) fn new(tools: &[Tool]) -> Self {
        let mut actions = BTreeMap::new();
        for group in Group::ALL {
            actions.insert(group.name().to_owned(), Named::Spanning);
            actions.insert(group.unattended(), Named::Group(Question::Unattended));
            for question in [Question::Approved, Question::Approve] {
                actions.insert(question.action(group.name()), Named::Group(question));
            }
        }
        for tool in tools {
            for question in Question::ALL {
                actions.insert(question.action(tool.name()), Named::Tool(question));
            }
        }
        Self { actions }
    }

    pub(crate) fn get(&self, action: &str) -> Option<Named> {
        self.actions.get(action).copied()
    }

    pub(crate) fn nearest(&self, action: &str) -> Option<&str> {
        nearest(action, self.actions.keys().map(String::as_str))
    }
}

/// The name most like a misspelt one, if any is like it at all.
pub(crate) fn nearest<'a>(misspelt: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (strsim::normalized_damerau_levenshtein(misspelt, name), name))
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// A declared tool and how its arguments appear to policies.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) declaration: ToolDeclaration,
    pub(crate) input: Shape,
}

impl Tool {
    pub(crate) fn name(&self) -> &str {
        &self.declaration.name
    }

    /// Checks names and reads the shapes of the arguments, all findings at once.
    pub(crate) fn read_all(
        declarations: &[ToolDeclaration],
        extension: &Extension,
    ) -> Result<Vec<Self>, Vec<Finding>> {
        let mut names = Names::new(extension);
        Self::each(declarations, |tool| {
            input_shape(&tool.name, &tool.input_schema, &mut names).map_err(|error| {
                Box::new(Finding {
                    property: Some(error.path).filter(|path| !path.is_empty()),
                    ..Finding::about(error.message)
                        .tool_named(&tool.name)
                        .suggest(error.remedy)
                })
            })
        })
    }

    /// Checks names only: nothing will look at the arguments.
    pub(crate) fn unread_all(declarations: &[ToolDeclaration]) -> Result<Vec<Self>, Vec<Finding>> {
        Self::each(declarations, |_| Ok(Shape::Record(RecordShape::default())))
    }

    fn each(
        declarations: &[ToolDeclaration],
        mut shape: impl FnMut(&ToolDeclaration) -> Result<Shape, Box<Finding>>,
    ) -> Result<Vec<Self>, Vec<Finding>> {
        let mut sorted: Vec<&ToolDeclaration> = declarations.iter().collect();
        // The generated names must not depend on the order of declaration.
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let mut findings = Vec::new();
        let mut tools: Vec<Self> = Vec::with_capacity(sorted.len());
        let mut seen = BTreeSet::new();
        for declaration in sorted {
            if let Err(finding) = check_name(&declaration.name, &mut seen) {
                findings.push(*finding);
                continue;
            }
            match shape(declaration) {
                Ok(input) => tools.push(Self {
                    declaration: declaration.clone(),
                    input,
                }),
                Err(finding) => findings.push(*finding),
            }
        }
        if findings.is_empty() {
            Ok(tools)
        } else {
            Err(findings)
        }
    }

    /// The names of the groups that hold the action of a question.
    pub(crate) fn ancestors(&self, question: Question) -> Vec<String> {
        let groups = || {
            Group::ALL
                .into_iter()
                .filter(|g| g.holds(&self.declaration))
        };
        let unattended = || groups().flat_map(|g| [g.name().to_owned(), g.unattended()]);
        match question {
            Question::Unattended => unattended().collect(),
            Question::Approved => std::iter::once(self.name().to_owned())
                .chain(unattended())
                .chain(groups().map(|g| question.action(g.name())))
                .collect(),
            Question::Approve => groups().map(|g| question.action(g.name())).collect(),
        }
    }

    /// Appends the entity types and actions of this tool in Cedar's schema language. `sessions`
    /// are the types of `context.session` in the order of the questions, where there is any.
    pub(crate) fn declare(
        &self,
        sessions: [Option<&str>; 3],
        extension: &Extension,
        out: &mut String,
    ) {
        self.input.declare(out);
        let mut facts = format!("\"input\": {},\n  ", self.input.cedar_type());
        if !self.declaration.derived.is_empty() {
            let derived = self.declaration.derived.iter();
            let derived: Vec<String> = derived
                .map(|(name, kind)| format!("{}: {}", quoted(name), kind.cedar()))
                .collect();
            let _ = write!(facts, "\"derived\": {{{}}},\n  ", derived.join(", "));
        }
        if let Some(app) = extension.facts_type() {
            let _ = write!(facts, "\"app\": {app},\n  ");
        }
        let [unattended, approved, approve] = sessions;
        for question in Question::ALL {
            let parents: Vec<String> = match question {
                // `T with approval` is a member of `T`, and through it of the groups of `T`.
                Question::Approved => std::iter::once(self.name().to_owned())
                    .chain(
                        Group::ALL
                            .into_iter()
                            .filter(|group| group.holds(&self.declaration))
                            .map(|group| question.action(group.name())),
                    )
                    .collect(),
                _ => self.ancestors(question),
            };
            let parents: Vec<String> = parents.iter().map(|name| quoted(name)).collect();
            let session = match question {
                Question::Unattended => unattended,
                Question::Approved => approved,
                Question::Approve => approve,
            };
            let session = session
                .map(|session| format!("\"session\": {session},\n  "))
                .unwrap_or_default();
            let _ = writeln!(
                out,
                "action {} in [{}] appliesTo {{ principal: [User], resource: [Agent], context: {{\n  \
                 {facts}{session}{COMMON_CONTEXT}{}}} }};",
                quoted(&question.action(self.name())),
                parents.join(", "),
                match question {
                    Question::Unattended => "\n",
                    Question::Approved => APPROVALS,
                    Question::Approve => APPROVALS_AND_REQUESTER,
                },
            );
        }
    }
}

const COMMON_CONTEXT: &str = "\"system\": {\"now\": datetime},\n  \
    \"run\": {\"id\": String, \"step\": Long},\n  \
    \"tool\": {\"name\": String, \"read_only\": Bool, \"destructive\": Bool, \"idempotent\": Bool}";

const APPROVALS: &str = ",\n  \"approvals\": \
    {\"count\": Long, \"approvers\": Set<User>, \"requested_at\": datetime}\n";

const APPROVALS_AND_REQUESTER: &str = ",\n  \"approvals\": \
    {\"count\": Long, \"approvers\": Set<User>, \"requested_at\": datetime},\n  \
    \"requester\": User\n";

/// The entity types and groups that every tool's schema begins with.
pub(crate) fn preamble(settings: &Settings) -> String {
    let attributes: Vec<(String, String)> = settings
        .user_attributes
        .iter()
        .map(|(name, kind)| (format!("{}?", quoted(name)), kind.cedar().to_owned()))
        .collect();
    let extension = &settings.extension;
    let mut out = String::from("entity Role;\nentity Agent");
    extension.agent.finish(&mut out, &[], &[]);
    out.push_str("entity User");
    extension.user.finish(&mut out, &["Role"], &attributes);
    extension.declare(&mut out);
    for group in Group::ALL {
        for name in [
            group.name().to_owned(),
            group.unattended(),
            Question::Approved.action(group.name()),
            Question::Approve.action(group.name()),
        ] {
            let _ = writeln!(out, "action {};", quoted(&name));
        }
    }
    out
}

fn check_name<'a>(name: &'a str, seen: &mut BTreeSet<&'a str>) -> Result<(), Box<Finding>> {
    let refuse = |message: String, remedy: String| {
        let finding = Finding::about(message).suggest(remedy).tool_named(name);
        Err(Box::new(finding))
    };
    if name.is_empty() || name.len() > MAX_NAME {
        return refuse(
            format!("the name of a tool has {} bytes", name.len()),
            format!("use 1 to {MAX_NAME}"),
        );
    }
    if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return refuse(
            "the name of a tool holds white space or a control character".to_owned(),
            "use letters, digits, `_` and `-`".to_owned(),
        );
    }
    if !seen.insert(name) {
        return refuse(
            "the tool is declared twice".to_owned(),
            "rename one of the two".to_owned(),
        );
    }
    Ok(())
}
