//! Tool declarations in a JSON file: policy authors have no Rust program at hand.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::declaration::ToolDeclaration;
use crate::load_error::{Finding, LoadError};
use crate::tool::nearest;

const FIELDS: [&str; 9] = [
    "name",
    "description",
    "input_schema",
    "read_only",
    "destructive",
    "idempotent",
    "require_approval",
    "annotations",
    "derived",
];

const HINTS: [&str; 5] = [
    "title",
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

impl ToolDeclaration {
    /// Reads a list of tools: a JSON array, or an object with the array under `tools` (the result
    /// of MCP's `tools/list`, or what [`write_list`](Self::write_list) wrote).
    ///
    /// A tool has a `name` and an `input_schema`; `read_only`, `destructive`, `idempotent`,
    /// `require_approval` and `derived` (names and types of derived facts) may say more. In MCP's shape (`inputSchema`) the hints stand under
    /// `annotations`, and a tool that is not said to be read-only or harmless is destructive, as
    /// MCP defines it. `file` is the name under which findings mention the text.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the text, each finding with the tool and the field.
    pub fn read_list(file: &str, text: &str) -> Result<Vec<Self>, LoadError> {
        let one = |message: String, remedy: &str| {
            LoadError::new(vec![of_file(file, Finding::about(message).suggest(remedy))])
        };
        let value: Value = serde_json::from_str(text).map_err(|error| {
            LoadError::new(vec![Finding {
                line: u32::try_from(error.line()).ok(),
                column: u32::try_from(error.column()).ok(),
                ..of_file(
                    file,
                    Finding::about(format!("the tools are not JSON: {error}"))
                        .suggest("write a list of tools, each with `name` and `input_schema`"),
                )
            }])
        })?;
        let list = match &value {
            Value::Array(list) => list,
            Value::Object(object) => match object.get("tools") {
                Some(Value::Array(list)) => list,
                _ => {
                    return Err(one(
                        "the object has no list `tools`".to_owned(),
                        "write `{\"tools\": [{\"name\": …, \"input_schema\": …}]}`",
                    ));
                }
            },
            _ => {
                return Err(one(
                    "the tools are neither a list nor an object".to_owned(),
                    "write `[{\"name\": …, \"input_schema\": …}]`",
                ));
            }
        };
        let mut tools = Vec::with_capacity(list.len());
        let mut findings = Vec::new();
        for (index, item) in list.iter().enumerate() {
            match read_one(index, item) {
                Ok(tool) => tools.push(tool),
                Err(finding) => findings.push(of_file(file, *finding)),
            }
        }
        if findings.is_empty() {
            Ok(tools)
        } else {
            Err(LoadError::new(findings))
        }
    }

    /// Writes tools for [`read_list`](Self::read_list), so that an agent can hand its tools to
    /// those who write its policies.
    pub fn write_list(tools: &[Self]) -> String {
        let tools: Vec<Value> = tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "input_schema": tool.input_schema,
                    "read_only": tool.read_only,
                    "destructive": tool.destructive,
                    "idempotent": tool.idempotent,
                    "require_approval": tool.require_approval,
                    "derived": tool.derived,
                })
            })
            .collect();
        format!("{:#}\n", json!({ "tools": tools }))
    }
}

fn of_file(file: &str, finding: Finding) -> Finding {
    Finding {
        file: Some(file.to_owned()),
        ..finding
    }
}

type Fault = Box<Finding>;

fn read_one(index: usize, item: &Value) -> Result<ToolDeclaration, Fault> {
    let fault = |message: String, remedy: &str| {
        Box::new(Finding::about(format!("entry {index}: {message}")).suggest(remedy))
    };
    let object = item.as_object().ok_or_else(|| {
        fault(
            "it is not an object".to_owned(),
            "write `{\"name\": …, \"input_schema\": …}`",
        )
    })?;
    let name = object.get("name").and_then(Value::as_str).ok_or_else(|| {
        fault(
            "it has no text `name`".to_owned(),
            "give the name that the model calls",
        )
    })?;
    let of_tool = |message: String, remedy: String| {
        Box::new(Finding::about(message).suggest(remedy).tool_named(name))
    };
    let mcp = object.contains_key("inputSchema");
    if !mcp && let Some(unknown) = object.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(of_tool(
            format!("`{unknown}` is not a field of a tool"),
            did_you_mean(unknown, &FIELDS),
        ));
    }
    let schema = object
        .get("input_schema")
        .or_else(|| object.get("inputSchema"))
        .filter(|schema| schema.is_object())
        .ok_or_else(|| {
            of_tool(
                "it has no object `input_schema`".to_owned(),
                "give the JSON Schema of its arguments; `{\"type\": \"object\"}` if it has none"
                    .to_owned(),
            )
        })?;
    let empty = Map::new();
    let hints = match object.get("annotations") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(hints)) => hints,
        Some(_) => {
            return Err(of_tool(
                "`annotations` is not an object".to_owned(),
                "write `{\"readOnlyHint\": true}` or leave it out".to_owned(),
            ));
        }
    };
    if !mcp && let Some(unknown) = hints.keys().find(|key| !HINTS.contains(&key.as_str())) {
        return Err(of_tool(
            format!("`{unknown}` is not a hint"),
            did_you_mean(unknown, &HINTS),
        ));
    }
    let flag = |own: &str, hint: &str| -> Result<Option<bool>, Fault> {
        match object.get(own).or_else(|| hints.get(hint)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(of_tool(
                format!("`{own}` is `{other}`"),
                "write true or false".to_owned(),
            )),
        }
    };
    let read_only = flag("read_only", "readOnlyHint")?.unwrap_or(false);
    let derived = match object.get("derived") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(types) => serde_json::from_value(types.clone()).map_err(|error| {
            of_tool(
                format!("`derived` does not declare facts: {error}"),
                "write `{\"total_cents\": \"long\"}`".to_owned(),
            )
        })?,
    };
    Ok(ToolDeclaration {
        derived,
        read_only,
        destructive: flag("destructive", "destructiveHint")?.unwrap_or(mcp && !read_only),
        idempotent: flag("idempotent", "idempotentHint")?.unwrap_or(false),
        require_approval: flag("require_approval", "")?.unwrap_or(false),
        ..ToolDeclaration::new(name, schema.clone())
    })
}

fn did_you_mean(unknown: &str, known: &[&str]) -> String {
    match nearest(unknown, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the fields are {}", known.join(", ")),
    }
}
