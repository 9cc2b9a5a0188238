//! The policy command, run as a program: exit codes, and what it says to those who err.

#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests may"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const DESK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/refund_policies");

fn policy(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_agentkit-policy"))
        .args(arguments)
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Expects an exit code and texts on standard error.
#[track_caller]
fn fails(output: &Output, code: i32, says: &[&str]) {
    let text = err(output);
    assert_eq!(output.status.code(), Some(code), "{text}{}", out(output));
    for said in says {
        assert!(text.contains(said), "`{said}` is not in\n{text}");
    }
}

fn desk(file: &str) -> String {
    format!("{DESK}/{file}")
}

/// A folder with a refund tool and the files of one test.
struct Desk(PathBuf);

impl Desk {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let desk = Self(folder);
        desk.write(
            "tools.json",
            r#"[{"name": "pay", "input_schema": {"type": "object", "properties":
                {"cents": {"type": "integer"}, "to": {"type": "string"}}, "required": ["cents", "to"]}}]"#,
        );
        desk.write("pay.cedar", GOOD);
        desk
    }

    fn write(&self, file: &str, text: &str) -> String {
        let path = self.0.join(file);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }

    fn check(&self, policies: &str) -> Output {
        let file = self.write("pay.cedar", policies);
        policy(&["check", &file, "--tools", &self.path("tools.json")])
    }

    fn test(&self, cases: &str, more: &[&str]) -> Output {
        let head = "tools: tools.json\npolicies: pay.cedar\nnow: 2026-03-01T12:00:00Z\n\
                    users: {clara: clerk, fiona: finance}\n";
        let file = self.write("pay.yaml", &format!("{head}{cases}"));
        let mut arguments = vec!["test", &file];
        arguments.extend(more);
        policy(&arguments)
    }
}

const GOOD: &str = r#"
@id("small") permit (principal in Role::"clerk", action == Action::"pay", resource)
when { context.input.cents < 100 };
@id("large") permit (principal in Role::"clerk", action == Action::"pay with approval", resource);
@id("finance") permit (principal in Role::"finance", action == Action::"approve pay", resource);
"#;

const CASE: &str = "cases:\n  - name: small\n    user: clara\n    call: pay\n    \
                    args: {cents: 99, to: acme}\n    expect: allow\n    by: small\n";

#[test]
fn the_refund_desk_checks_and_passes_with_full_coverage() {
    let output = policy(&["check", "--strict", &desk("refund_desk.yaml")]);
    fails(&output, 0, &[]);
    assert!(out(&output).contains("10 policies over 3 tools load, 0 warnings"));
    let output = policy(&["test", &desk("refund_desk.yaml"), "--threshold", "100"]);
    fails(&output, 0, &[]);
    for figure in ["policies: 100 %", "clauses: 100 %", "questions: 100 %"] {
        assert!(out(&output).contains(figure), "{}", out(&output));
    }
    fails(
        &policy(&["fmt", "--check", &desk("refund_desk.cedar")]),
        0,
        &[],
    );
}

#[test]
fn a_syntax_error_is_shown_with_file_and_line() {
    let output = Desk::new("syntax").check(&GOOD.replace("< 100", "< "));
    fails(
        &output,
        2,
        &["pay.cedar:3:", "unexpected token `}`; expected "],
    );
}

#[test]
fn an_unknown_action_names_the_nearest() {
    let output = Desk::new("action").check(&GOOD.replace("\"approve pay\"", "\"aprove pay\""));
    fails(
        &output,
        2,
        &["pay.cedar:5:", "did you mean `Action::\"approve pay\"`?"],
    );
}

#[test]
fn a_misspelt_field_names_the_nearest() {
    let output = Desk::new("field").check(&GOOD.replace("input.cents", "input.cent"));
    fails(&output, 2, &["pay.cedar:3:", "policy `small`", "cents"]);
}

#[test]
fn a_duplicate_id_says_where_the_first_one_stands() {
    let output = Desk::new("duplicate").check(&GOOD.replace("\"large\"", "\"small\""));
    fails(
        &output,
        2,
        &[
            "pay.cedar:4:",
            "the id is taken",
            "pay.cedar:2",
            "an id of its own",
        ],
    );
}

#[test]
fn a_forbid_that_can_overflow_is_worth_a_warning() {
    let desk = Desk::new("overflow");
    let policies = format!(
        "{GOOD}@id(\"cap\") forbid (principal, action in Action::\"pay\", resource)\n\
         when {{ context.input.cents * 100 > 500000 }};\n"
    );
    let output = desk.check(&policies);
    fails(
        &output,
        0,
        &[
            "warning:",
            "policy `cap`",
            "overflow",
            "compare with constants",
        ],
    );
    let strict = policy(&[
        "check",
        "--strict",
        &desk.path("pay.cedar"),
        "--tools",
        &desk.path("tools.json"),
    ]);
    fails(&strict, 1, &["policy `cap`"]);
}

#[test]
fn a_blanket_permit_is_worth_a_warning() {
    let policies =
        format!("{GOOD}@id(\"all\") permit (principal, action == Action::\"pay\", resource);\n");
    let output = Desk::new("blanket").check(&policies);
    fails(&output, 0, &["warning:", "policy `all`", "name a role"]);
}

#[test]
fn policies_without_tools_say_how_to_name_them() {
    let desk = Desk::new("toolless");
    fails(
        &policy(&["check", &desk.path("pay.cedar")]),
        2,
        &["--tools tools.json"],
    );
    fails(
        &policy(&["check", &desk.path("nowhere.yaml")]),
        2,
        &["nowhere.yaml", "cannot be read"],
    );
}

#[test]
fn tools_that_are_no_tools_name_tool_and_field() {
    let desk = Desk::new("tools");
    for (tools, says) in [
        (
            "[{\"name\": \"pay\", \"input_schma\": {}}]",
            "did you mean `input_schema`?",
        ),
        (
            "[{\"name\": \"pay\"}]",
            "tool `pay`: it has no object `input_schema`",
        ),
        ("[{\"input_schema\": {}}]", "entry 0: it has no text `name`"),
        ("{\"tols\": []}", "the object has no list `tools`"),
        ("{", "not JSON"),
        (
            "[{\"name\": \"pay\", \"input_schema\": {}, \"read_only\": \"yes\"}]",
            "`read_only` is `\"yes\"`; write true or false",
        ),
    ] {
        desk.write("tools.json", tools);
        let output = policy(&[
            "check",
            &desk.path("pay.cedar"),
            "--tools",
            &desk.path("tools.json"),
        ]);
        fails(&output, 2, &["tools.json", says]);
    }
}

#[test]
fn a_failed_case_shows_expected_found_and_why() {
    let output = Desk::new("failed").test(&CASE.replace("99", "100"), &[]);
    fails(&output, 1, &[]);
    let text = out(&output);
    for said in [
        "pay.yaml:6: FAILED: small",
        "expected: allow, by `small`",
        "found:    require approval by one person, by `large`",
        "1 cases, 1 failed",
    ] {
        assert!(text.contains(said), "`{said}` is not in\n{text}");
    }
}

#[test]
fn an_expectation_is_exact_about_policies_and_errors() {
    let desk = Desk::new("exact");
    let output = desk.test(&CASE.replace("by: small", "by: [small, other]"), &[]);
    fails(&output, 1, &[]);
    assert!(
        out(&output).contains("expected: allow, by `other`, `small`"),
        "{}",
        out(&output)
    );
    // A denial that comes about by an argument that does not fit is not the denial that was meant.
    let wrong =
        "cases:\n  - {name: x, user: clara, call: pay, args: {cents: 1}, expect: deny, by: []}\n";
    let output = desk.test(wrong, &[]);
    fails(&output, 1, &[]);
    assert!(
        out(&output).contains("argument `to`: is missing"),
        "{}",
        out(&output)
    );
    let output = desk.test(&CASE.replace("    by: small\n", ""), &[]);
    fails(&output, 2, &["`expect` is expected without `by`"]);
}

#[test]
fn every_case_runs_after_one_has_failed() {
    let second = CASE
        .replace("cases:\n", "")
        .replace("name: small", "name: second");
    let output = Desk::new("every").test(&format!("{}{second}", CASE.replace("99", "100")), &[]);
    fails(&output, 1, &[]);
    assert!(
        out(&output).contains("2 cases, 1 failed"),
        "{}",
        out(&output)
    );
}

#[test]
fn no_cases_are_a_failure() {
    let desk = Desk::new("none");
    for cases in ["", "cases:\n", "cases: []\n"] {
        let output = desk.test(cases, &[]);
        fails(&output, 1, &[]);
        assert!(
            out(&output).contains("nothing was tested"),
            "{}",
            out(&output)
        );
    }
}

#[test]
fn mistakes_in_a_test_file_name_line_and_remedy() {
    let desk = Desk::new("yaml");
    for (cases, says) in [
        (
            CASE.replace("expect:", "expct:"),
            "`expct` is not a field of a case; did you mean `expect`?",
        ),
        (
            CASE.replace("user: clara", "user: clra"),
            "did you mean `clara`?",
        ),
        (
            CASE.replace("expect: allow", "expect: maybe"),
            "write `allow`, `deny`, `1 approval`",
        ),
        (
            CASE.replace("    expect: allow\n    by: small\n", ""),
            "the case expects nothing",
        ),
        (
            CASE.replace("    call: pay\n", ""),
            "the case has no `call`",
        ),
        (format!("{CASE}csaes: []\n"), "did you mean `cases`?"),
        (format!("{CASE}cases: []\n"), "duplicate"),
        (CASE.replace("cases:", "cases: ]"), "not readable as YAML"),
        (
            format!("{CASE}{}", CASE.replace("cases:\n", "")),
            "the name `small` is taken by the case in line 6",
        ),
        (
            format!("{CASE}    columns: [args.cents]\n    rows: [[1, 2]]\n"),
            "the row has 2 cells",
        ),
        (
            format!("{CASE}    now: yesterday\n"),
            "`now` is `yesterday`, not a moment",
        ),
    ] {
        fails(&desk.test(&cases, &[]), 2, &["pay.yaml:", says]);
    }
}

#[test]
fn a_case_about_an_unknown_tool_fails() {
    let output = Desk::new("unknown").test(&CASE.replace("call: pay", "call: pya"), &[]);
    fails(&output, 1, &[]);
    assert!(
        out(&output).contains("the tool `pya` is not declared"),
        "{}",
        out(&output)
    );
}

#[test]
fn too_little_coverage_is_exit_code_3_and_lists_what_is_missing() {
    let output = Desk::new("coverage").test(CASE, &["--threshold", "80"]);
    fails(&output, 3, &[]);
    for said in [
        "policies: 33 % (1 of 3)",
        "policy `finance` never decides",
        "policy `small`: never false: context.input.cents < 100",
        "tool `pay`: approve is never permitted",
        "coverage is below 80 %",
    ] {
        assert!(
            out(&output).contains(said),
            "`{said}` is not in\n{}",
            out(&output)
        );
    }
    fails(
        &Desk::new("enough").test(CASE, &["--threshold", "10"]),
        0,
        &[],
    );
}

#[test]
fn a_mutant_that_survives_is_exit_code_3_unless_it_is_explained() {
    let desk = Desk::new("mutants");
    let cases = "cases:\n  - {name: s, user: clara, call: pay, args: {cents: 99, to: a}, expect: allow, by: small}\n  \
                 - {name: l, user: clara, call: pay, args: {cents: 100, to: a}, expect: 1 approval, by: large}\n  \
                 - {name: f, user: fiona, call: pay, args: {cents: 1, to: a}, expect: deny, by: []}\n  \
                 - {name: a, user: clara, call: pay, args: {cents: 1, to: a}, may_approve: {fiona: finance}}\n";
    let output = desk.test(cases, &["--mutants"]);
    fails(&output, 3, &[]);
    assert!(
        out(&output).contains("change: 'principal in Role::\"finance\" => principal'"),
        "{}",
        out(&output)
    );
    let explained = format!(
        "{cases}equivalent:\n  - policy: finance\n    change: 'principal in Role::\"finance\" => principal'\n    reason: a test\n"
    );
    let output = desk.test(&explained, &["--mutants"]);
    fails(&output, 0, &[]);
    assert!(
        out(&output).contains("1 survive as explained"),
        "{}",
        out(&output)
    );
    let noticed = format!(
        "{cases}  - {{name: n, user: clara, call: pay, args: {{cents: 1, to: a}}, may_not_approve: {{clara: []}}}}\n"
    );
    fails(&desk.test(&noticed, &["--mutants"]), 0, &[]);
    let stale = format!("{noticed}{}", explained.strip_prefix(cases).unwrap());
    let output = desk.test(&stale, &["--mutants"]);
    fails(&output, 3, &[]);
    assert!(
        out(&output).contains("is not a change that survives; remove the entry"),
        "{}",
        out(&output)
    );
    // What was not tried is not passed.
    let output = desk.test(&noticed, &["--mutants", "--mutant-seconds", "0"]);
    fails(&output, 3, &[]);
    assert!(
        out(&output).contains("mutants were not tried"),
        "{}",
        out(&output)
    );
}

#[test]
fn results_are_written_for_programs_and_ci_systems() {
    let desk = Desk::new("formats");
    let failing = CASE.replace("99", "100");
    let output = desk.test(&failing, &["--format", "json"]);
    fails(&output, 1, &[]);
    let report: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["exit"], 1);
    assert_eq!(report["files"][0]["cases"][0]["line"], 6);
    assert_eq!(
        report["files"][0]["cases"][0]["failures"][0]["about"],
        "expect"
    );
    assert_eq!(report["files"][0]["coverage"]["policies"]["total"], 3);
    let output = desk.test("cases: 5\n", &["--format", "json"]);
    fails(&output, 2, &[]);
    let report: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["errors"][0]["line"], 5);
    let xml = desk.path("junit.xml");
    let output = desk.test(
        &failing,
        &["--format", "junit", "--output", &xml, "--threshold", "100"],
    );
    fails(&output, 1, &[]);
    let text = fs::read_to_string(xml).unwrap();
    for said in [
        "<testsuites",
        "tests=\"2\"",
        "failures=\"2\"",
        "name=\"small\"",
        "expected: allow, by `small`",
    ] {
        assert!(text.contains(said), "`{said}` is not in\n{text}");
    }
}

#[test]
fn tests_of_cedars_own_command_line_run_beside_the_cases() {
    let desk = Desk::new("cedar");
    let test = |decision: &str, cents: i64| {
        format!(
            r#"[{{"name": "imported", "request": {{"principal": "User::\"clara\"", "action": "Action::\"pay\"",
              "resource": "Agent::\"desk\"", "context": {{"input": {{"cents": {cents}, "to": "acme"}},
              "system": {{"now": {{"__extn": {{"fn": "datetime", "arg": "2026-03-01"}}}}}},
              "run": {{"id": "r", "step": 0}},
              "tool": {{"name": "pay", "read_only": false, "destructive": false, "idempotent": false}}}}}},
              "entities": [{{"uid": {{"type": "User", "id": "clara"}}, "attrs": {{}},
                "parents": [{{"type": "Role", "id": "clerk"}}]}}],
              "decision": "{decision}", "reason": ["small"], "num_errors": 0}}]"#
        )
    };
    desk.write("cedar.json", &test("allow", 99));
    let output = desk.test("cedar: cedar.json\n", &[]);
    fails(&output, 0, &[]);
    assert!(
        out(&output).contains("1 cases, 0 failed"),
        "{}",
        out(&output)
    );
    assert!(
        out(&output).contains("policies: 33 %"),
        "they count as coverage: {}",
        out(&output)
    );
    desk.write("cedar.json", &test("allow", 100));
    let output = desk.test("cedar: cedar.json\n", &[]);
    fails(&output, 1, &[]);
    assert!(
        out(&output).contains("FAILED: imported"),
        "{}",
        out(&output)
    );
    desk.write(
        "cedar.json",
        &test("allow", 99).replace("num_errors", "num_error"),
    );
    fails(
        &desk.test("cedar: cedar.json\n", &[]),
        2,
        &["cedar.json: test 1", "num_error"],
    );
    desk.write(
        "cedar.json",
        &test("allow", 99).replace("Action::\\\"pay", "Action::\\\"pya"),
    );
    let output = desk.test("cedar: cedar.json\n", &[]);
    fails(&output, 1, &[]);
    assert!(
        out(&output).contains("did you mean `Action::\"pay\"`?"),
        "{}",
        out(&output)
    );
}

#[test]
fn a_call_is_explained_with_those_who_could_approve_it() {
    let desk = Desk::new("explain");
    let (file, tools) = (desk.path("pay.cedar"), desk.path("tools.json"));
    let output = policy(&[
        "explain",
        &file,
        "--tools",
        &tools,
        "--user",
        "clara:clerk",
        "--call",
        "pay",
        "--args",
        r#"{"cents": 100, "to": "acme"}"#,
        "--approver",
        "fiona:finance",
        "--approver",
        "guest",
    ]);
    fails(&output, 0, &[]);
    for said in [
        "require approval by one person",
        "by `large`",
        "`fiona` may approve",
        "`guest` may not approve",
    ] {
        assert!(
            out(&output).contains(said),
            "`{said}` is not in\n{}",
            out(&output)
        );
    }
    let output = policy(&[
        "explain",
        &file,
        "--tools",
        &tools,
        "--user",
        "guest",
        "--call",
        "pay",
        "--args",
        r#"{"cents": 1, "to": "acme"}"#,
        "--format",
        "json",
    ]);
    let json: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(json["outcome"], "deny");
    assert_eq!(json["nearest"][0]["fails"], "principal in Role::\"clerk\"");
    let output = policy(&[
        "explain", &file, "--tools", &tools, "--user", "guest", "--call", "pay", "--args", "{",
    ]);
    fails(&output, 2, &["`--args` is not JSON"]);
    let output = policy(&["explain", &desk_yaml(&desk), "--case", "smal"]);
    fails(&output, 2, &["did you mean `small`?"]);
}

fn desk_yaml(desk: &Desk) -> String {
    desk.test(CASE, &[]);
    desk.path("pay.yaml")
}

#[test]
fn the_schema_is_printed_as_cedar_reads_it() {
    let output = policy(&["schema", &desk("tools.json")]);
    fails(&output, 0, &[]);
    let (schema, _) = cedar_policy::Schema::from_cedarschema_str(&out(&output)).unwrap();
    assert!(
        schema
            .actions()
            .any(|action| action.id().unescaped() == "issue_refund with approval")
    );
}

#[test]
fn policies_are_formatted_in_place_and_mean_the_same() {
    let desk = Desk::new("fmt");
    let file = desk.path("pay.cedar");
    fails(&policy(&["fmt", "--check", &file]), 1, &[]);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        GOOD,
        "`--check` writes nothing"
    );
    let digest = |output: Output| out(&output).lines().last().unwrap().to_owned();
    let check = || policy(&["check", &file, "--tools", &desk.path("tools.json")]);
    let before = digest(check());
    fails(&policy(&["fmt", &file]), 0, &[]);
    assert_ne!(fs::read_to_string(&file).unwrap(), GOOD);
    fails(&policy(&["fmt", "--check", &file]), 0, &[]);
    assert_eq!(digest(check()), before);
    let broken = desk.write("broken.cedar", "permit (");
    fails(&policy(&["fmt", &broken]), 2, &["broken.cedar"]);
    assert_eq!(fs::read_to_string(&broken).unwrap(), "permit (");
}
