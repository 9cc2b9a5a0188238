//! That no case is missing.

use std::{collections::BTreeMap, fs, path::Path};

/// The rules in a line each; the tests that show them have their numbers.
const CASES: [&str; 40] = [
    "raw names lose their prefix",
    "descriptions are exact",
    "arguments have descriptions",
    "optionality is a matter of types",
    "borrowed arguments are owned and lent",
    "no static argument",
    "no `impl Trait` argument",
    "no generic tools",
    "named lifetimes in arguments only",
    "a where clause stays on the function",
    "conditions reach field and call",
    "what is configured away is gone",
    "`mut` stays inside",
    "no patterns",
    "methods need their `impl` block",
    "nothing is null",
    "what comes back is decided by its type",
    "a result that is not Serialize",
    "an argument without derives",
    "two tools of one name",
    "names that are taken",
    "arguments shadow nothing",
    "local items do not reach the expansion",
    "all problems at once",
    "names that providers accept",
    "approval as it is declared",
    "kinds of functions",
    "a future that is not Send",
    "an unfinished body",
    "attributes of arguments",
    "contexts",
    "every lint is clean",
    "visibility",
    "macros make tools",
    "agentkit somewhere else",
    "other attributes stay",
    "any number of arguments",
    "no standard library",
    "what an agent is",
    "problems of an agent",
];

#[test]
fn every_case_has_a_test_of_its_number() {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    gather(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("macros"),
        &mut found,
    );
    let mut missing = Vec::new();
    for (index, rule) in CASES.iter().enumerate() {
        let number = index + 1;
        match found.get(&number) {
            Some(tests) => println!("{number:2} {rule}: {}", tests.join(", ")),
            None => missing.push(format!("{number} ({rule})")),
        }
    }
    assert!(missing.is_empty(), "no test shows {}", missing.join(", "));
}

fn gather(folder: &Path, found: &mut BTreeMap<usize, Vec<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            gather(&path, found);
            continue;
        }
        if !name.ends_with(".rs") {
            continue;
        }
        if let Some(rest) = name.strip_prefix("case_") {
            // A case that must not compile shows nothing without the errors that it must give.
            assert!(
                path.with_extension("stderr").exists(),
                "{name} has no errors beside it"
            );
            let number = rest[..2].parse().unwrap();
            found.entry(number).or_default().push(name.clone());
        }
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            let start = line.trim_start();
            let start = start.strip_prefix("async ").unwrap_or(start);
            if let Some(rest) = start.strip_prefix("fn case_") {
                let number = rest[..2].parse().unwrap();
                let function = rest.split('(').next().unwrap();
                found
                    .entry(number)
                    .or_default()
                    .push(format!("{name} case_{function}"));
            }
        }
    }
}
