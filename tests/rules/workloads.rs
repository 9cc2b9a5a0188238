//! Real tasks with their right tool calls. The data are published by others and not part of this
//! repository: they are looked for at `AGENTKIT_WORKLOADS`, or else in `shared/workloads` beside
//! the repository.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use agentkit::model::{
    Message,
    scripted::{Reply, ScriptedModel},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// One task: what a user (or an attacker) wants, and the calls that do it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Task {
    pub(crate) suite: String,
    #[serde(rename = "task")]
    pub(crate) number: Value,
    pub(crate) prompt: String,
    pub(crate) calls: Vec<TaskCall>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TaskCall {
    pub(crate) tool: String,
    pub(crate) args: Value,
}

/// The folder of the workloads, or `None` after saying what is skipped.
pub(crate) fn folder(what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("AGENTKIT_WORKLOADS").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../shared/workloads"
            ))
        },
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!(
        "skipped: {what}, because there are no workloads at {} (set AGENTKIT_WORKLOADS)",
        folder.display()
    );
    None
}

/// The tasks of a file of JSON lines.
pub(crate) fn tasks(folder: &Path, file: &str) -> Vec<Task> {
    std::fs::read_to_string(folder.join(file))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A JSON file.
pub(crate) fn json<T: DeserializeOwned>(folder: &Path, file: &str) -> T {
    serde_json::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap()
}

/// A model that plays the calls of whichever task it is given by its [`order`]: in one turn all
/// that only read, up to and with the next one that changes something.
pub(crate) fn script(tasks: &[Task], changes: fn(&str) -> bool) -> ScriptedModel {
    let turns: HashMap<String, Vec<Vec<TaskCall>>> = tasks
        .iter()
        .map(|task| {
            let turns = task.calls.split_inclusive(|call| changes(&call.tool));
            (task.order(), turns.map(<[TaskCall]>::to_vec).collect())
        })
        .collect();
    ScriptedModel::new().pieces_of(5).answering(move |request| {
        let order = request.last_user_text().unwrap_or_default();
        let Some(turn) = turns[order].get(request.turns_since_user()) else {
            return Reply::text("That is done.");
        };
        let reply = Reply::text("One moment.").interleaved();
        turn.iter()
            .fold(reply, |reply, call| reply.call(&call.tool, &call.args))
    })
}

impl Task {
    /// What the user says: the prompt, under the task's number, since prompts repeat.
    pub(crate) fn order(&self) -> String {
        format!("{} {}: {}", self.suite, self.number, self.prompt)
    }
}

/// What the model was shown has the results of each turn in one message, in the order of the
/// calls, under our own ids.
pub(crate) fn check_conversations(model: &ScriptedModel) {
    for request in model.requests() {
        for pair in request.messages.windows(2) {
            let [Message::Assistant(turn), next] = pair else {
                continue;
            };
            let Message::Tool(results) = next else {
                panic!("a turn is followed by its results: {next:?}");
            };
            let called: Vec<_> = turn.tool_calls.iter().map(|part| &part.call).collect();
            let answered: Vec<_> = results.results.iter().map(|part| &part.call).collect();
            assert_eq!(called, answered);
        }
    }
}
