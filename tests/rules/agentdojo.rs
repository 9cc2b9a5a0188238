//! The calls of `AgentDojo`'s tasks, and of the airline suite of tau-bench, through schemas, gate
//! and storage: what is stored, approved and executed is byte for byte what the task calls with.
//! The tools themselves only echo.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{Arc, Mutex},
};

use agentkit::{
    agent::{Agent, AgentDefinition, PendingError, PendingSet, ResumeSet},
    approval::{PendingCall, PendingKind, Verdict},
    call::{CallId, CallState, Canonical, CanonicalError, RunId},
    prelude::*,
    tool::{ApprovalRule, ArgumentError, DynTool, Dynamic, ToolContext, ToolError},
};
use serde::Deserialize;
use serde_json::Value;

use crate::workloads::{self, Task};

/// The suites, with the files of their tools and tasks.
const SUITES: [(&str, &str, &str); 5] = [
    ("workspace", "agentdojo-tools.json", "agentdojo.jsonl"),
    ("travel", "agentdojo-tools.json", "agentdojo.jsonl"),
    ("banking", "agentdojo-tools.json", "agentdojo.jsonl"),
    ("slack", "agentdojo-tools.json", "agentdojo.jsonl"),
    ("tau-airline", "tau-bench-tools.json", "tau-bench.jsonl"),
];

/// An agent with the tools of one suite.
struct Suite<const INDEX: usize>;

#[derive(Deserialize)]
struct OfferedTool {
    name: String,
    description: String,
    input_schema: Value,
}

/// What reached the tools.
#[derive(Default)]
struct Echoes(Mutex<HashMap<CallId, Canonical>>);

/// A pending call of a tool that has no Rust type.
struct Waiting(PendingCall);

struct NoQuestions;

impl PendingSet for Waiting {
    fn from_call(call: PendingCall) -> Result<Self, PendingError> {
        Ok(Self(call))
    }
}

impl ResumeSet for NoQuestions {
    fn decode(_: &str, _: &Value) -> Result<Self, ArgumentError> {
        Ok(Self)
    }

    fn tool(&self) -> &'static str {
        ""
    }

    fn encode(&self) -> Result<Canonical, CanonicalError> {
        Canonical::of(&Value::Null)
    }
}

fn changes(tool: &str) -> bool {
    let reading = [
        "calculate",
        "check_",
        "get_",
        "list_",
        "read_",
        "search_",
        "think",
    ];
    !reading.iter().any(|prefix| tool.starts_with(prefix))
}

fn echo(tool: OfferedTool) -> Arc<dyn DynTool> {
    let rule = if changes(&tool.name) {
        ApprovalRule::required()
    } else {
        ApprovalRule::default()
    };
    let body = |arguments: Value, cx: ToolContext| async move {
        let echoes = cx.context::<Echoes>()?;
        let text = Canonical::of(&arguments).map_err(ToolError::from_error)?;
        echoes.0.lock().unwrap().insert(cx.run().call.clone(), text);
        Ok(Flow::Done(arguments))
    };
    let tool = Dynamic::new(tool.name, tool.description, tool.input_schema, body).unwrap();
    Arc::new(tool.approval(rule))
}

impl<const INDEX: usize> Agent for Suite<INDEX> {
    type Pending = Waiting;
    type Resume = NoQuestions;

    fn definition() -> AgentDefinition {
        let (suite, tools, _) = SUITES[INDEX];
        let folder = workloads::folder("").expect("the test looked for it");
        let mut tools: BTreeMap<String, Vec<OfferedTool>> = workloads::json(&folder, tools);
        AgentDefinition::new(suite, "scripted/scripted", "Do as you are told.")
            .tools(tools.remove(suite).unwrap().into_iter().map(echo))
    }
}

fn person(id: &str) -> Principal {
    Principal::new(id, "test")
}

/// Plays one task; decides every call that waits as `verdict` says. Gives the calls that a person
/// was asked about.
async fn play<A: Agent<Pending = Waiting>>(
    hosted: &Hosted<A>,
    task: &Task,
    verdict: &Verdict,
) -> (RunId, HashMap<CallId, Canonical>) {
    let input = Input::new(person("ann"), task.order()).max_steps(99);
    let mut outcome = hosted.generate(input).await.unwrap();
    let mut asked = HashMap::new();
    loop {
        match outcome {
            Outcome::Finished { run, .. } => return (run, asked),
            Outcome::Suspended(suspended) => {
                assert!(suspended.in_doubt.is_empty() && suspended.unfit.is_empty());
                for Waiting(call) in suspended.pending {
                    assert_eq!(call.kind, PendingKind::Approval);
                    assert!(changes(&call.tool), "{} only reads", call.tool);
                    let decision = Decision {
                        run: call.run,
                        call: call.call.clone(),
                        fingerprint: call.fingerprint,
                        verdict: verdict.clone(),
                    };
                    hosted.decide(&person("bob"), decision).await.unwrap();
                    asked.insert(call.call, call.arguments);
                }
                outcome = hosted.resume_and_wait(&suspended.run).await.unwrap();
            }
            _ => panic!("an outcome that is not known here"),
        }
    }
}

/// What is stored, was shown, and reached the tools is what the task calls with.
async fn check(
    task: &Task,
    store: &Store,
    run: &RunId,
    asked: &HashMap<CallId, Canonical>,
    echoes: &Echoes,
    approving: bool,
) {
    let seen = echoes.0.lock().unwrap().clone();
    let calls = store.calls(run).await.unwrap();
    assert_eq!(calls.len(), task.calls.len(), "{}", task.number);
    for (call, wanted) in calls.iter().zip(&task.calls) {
        assert_eq!(call.tool, wanted.tool);
        let stored = call.arguments.as_ref().unwrap_or_else(|| {
            panic!(
                "{}: {} is refused: {:?}",
                task.number, call.tool, call.outcome
            )
        });
        assert_eq!(*stored, Canonical::of(&wanted.args).unwrap());
        if approving || !changes(&call.tool) {
            assert_eq!(call.state, CallState::Succeeded, "{}", call.tool);
            assert_eq!(seen[&call.id].as_bytes(), stored.as_bytes());
        } else {
            assert_eq!(call.state, CallState::Declined, "{}", call.tool);
            assert!(!seen.contains_key(&call.id), "{}", call.tool);
        }
        match asked.get(&call.id) {
            Some(shown) => assert_eq!(shown.as_bytes(), stored.as_bytes()),
            // What was declined once is declined at once when it is proposed again.
            None => assert!(!(approving && changes(&call.tool)), "{}", call.tool),
        }
    }
    store.verify_journal(run).await.unwrap().unwrap();
}

/// How many tasks, calls, and calls that a person was asked about.
async fn play_all<const INDEX: usize>(folder: &Path, verdict: &Verdict) -> (usize, usize, usize) {
    let (suite, _, tasks) = SUITES[INDEX];
    let mut tasks = workloads::tasks(folder, tasks);
    tasks.retain(|task| task.suite == suite);
    let store = Store::open("sqlite::memory:").await.unwrap();
    let model = workloads::script(&tasks, changes);
    let echoes = Arc::new(Echoes::default());
    let hosted = Suite::<INDEX>::builder()
        .store(store.clone())
        .model(model.clone())
        .ctx_shared(Arc::clone(&echoes))
        .build()
        .unwrap();
    let mut counted = (0, 0, 0);
    for task in &tasks {
        let (run, asked) = play(&hosted, task, verdict).await;
        let approving = *verdict == Verdict::Approve;
        check(task, &store, &run, &asked, &echoes, approving).await;
        counted.0 += 1;
        counted.1 += task.calls.len();
        counted.2 += asked.len();
    }
    workloads::check_conversations(&model);
    counted
}

async fn play_suites(what: &str, verdict: Verdict) -> Option<[(usize, usize, usize); 5]> {
    let folder = workloads::folder(what)?;
    Some([
        play_all::<0>(&folder, &verdict).await,
        play_all::<1>(&folder, &verdict).await,
        play_all::<2>(&folder, &verdict).await,
        play_all::<3>(&folder, &verdict).await,
        play_all::<4>(&folder, &verdict).await,
    ])
}

#[tokio::test]
async fn approved_calls_of_all_tasks_run_with_the_approved_bytes() {
    let what = "AgentDojo's calls and the airline's, approved";
    if let Some(counted) = play_suites(what, Verdict::Approve).await {
        let expected = [
            (54, 94, 35),
            (27, 136, 12),
            (25, 45, 25),
            (26, 111, 40),
            (50, 158, 60),
        ];
        assert_eq!(counted, expected, "tasks, calls, approvals of each suite");
    }
}

#[tokio::test]
async fn declined_calls_of_all_tasks_do_not_run() {
    let what = "AgentDojo's calls and the airline's, declined";
    let decline = Verdict::Decline {
        reason: Some("not today".to_owned()),
    };
    if let Some(counted) = play_suites(what, decline).await {
        // Two calls of the banking suite are proposed again after they were declined.
        assert_eq!(counted.map(|(_, _, asked)| asked), [35, 12, 23, 40, 60]);
    }
}
