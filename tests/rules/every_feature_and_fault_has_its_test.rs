//! Reads the table `coverage.md`.

use std::{collections::BTreeMap, path::Path};

/// The tests of one row, and what it says is not done.
struct Row {
    tests: Vec<String>,
    open: String,
}

fn table() -> BTreeMap<String, Row> {
    let text = include_str!("../coverage.md");
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, what, tests, open] = cells.as_slice() else {
            panic!("not four cells: {line}")
        };
        if *number == "no." {
            continue;
        }
        assert!(!what.is_empty(), "{line}");
        let tests = tests
            .split(',')
            .map(|test| test.trim().trim_matches('`').to_owned())
            .filter(|test| !test.is_empty())
            .collect();
        let open = (*open).to_owned();
        let before = rows.insert((*number).to_owned(), Row { tests, open });
        assert!(before.is_none(), "twice: {number}");
    }
    rows
}

#[test]
fn nothing_is_missing() {
    let rows = table();
    let wanted = (1..=14)
        .map(|number| format!("F{number}"))
        .chain((1..=44).map(|number| number.to_string()));
    let mut count = 0;
    for number in wanted {
        let row = rows
            .get(&number)
            .unwrap_or_else(|| panic!("{number} is missing"));
        assert!(
            !row.tests.is_empty() || !row.open.is_empty(),
            "{number} has neither a test nor a word about why not"
        );
        if !row.open.is_empty() {
            eprintln!("{number}: not done: {}", row.open);
        }
        count += 1;
    }
    assert_eq!(rows.len(), count, "a number that nobody knows");
}

#[test]
fn every_named_test_exists() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let main = std::fs::read_to_string(rules.join("main.rs")).unwrap();
    for (number, row) in table() {
        for test in row.tests {
            let (file, name) = test.split_once("::").expect("file::test");
            let path = if file.contains('/') {
                root.join(file)
            } else {
                assert!(
                    main.contains(&format!("mod {file};")),
                    "{number}: {file} is not compiled"
                );
                rules.join(format!("{file}.rs"))
            };
            let source = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{number}: {}: {error}", path.display()));
            assert!(
                is_test(&source, name),
                "{number}: there is no test `{test}`"
            );
        }
    }
}

/// Whether the source has a test function of this name, and it is not ignored.
fn is_test(source: &str, name: &str) -> bool {
    let declared = [format!("fn {name}()"), format!("fn {name}(")];
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let found = lines.iter().position(|line| {
        let line = line.trim_start_matches("async ");
        declared.iter().any(|declared| line.starts_with(declared))
    });
    let Some(found) = found else { return false };
    let attributes: Vec<_> = lines[..found]
        .iter()
        .rev()
        .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
        .collect();
    attributes
        .iter()
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}
