//! What must not compile, with the errors as people read them: one error for one mistake, where
//! the mistake is, with help. The cases are in `fail/`, each beside its errors.
//!
//! `RECORD=1` records the errors anew; read them before you keep them.
//!
//! The compiler is called directly, against the very `agentkit` that this test is linked with:
//! what checks such cases through cargo builds all dependencies twice more.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

#[test]
fn mistakes_are_reported_once_where_they_are_with_help() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("macros/fail");
    let mut cases: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    cases.sort();
    assert!(cases.len() > 20, "the cases are gone");
    let compiler = Compiler::new();
    let record = std::env::var_os("RECORD").is_some();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(failure) = compiler.check(case, record) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

struct Compiler {
    /// Where cargo put this test and everything it is linked with.
    libraries: PathBuf,
    agentkit: PathBuf,
}

impl Compiler {
    fn new() -> Self {
        let test = std::env::current_exe().unwrap();
        let libraries = test.parent().unwrap().to_owned();
        let built = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        // There may be others, of other features or of older sources; the newest one is current.
        let agentkit = fs::read_dir(&libraries)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy();
                name.starts_with("libagentkit-") && name.ends_with(".rlib")
            })
            .max_by_key(|path| built(path))
            .expect("this test is linked with agentkit");
        Self {
            libraries,
            agentkit,
        }
    }

    fn check(&self, case: &Path, record: bool) -> Result<(), String> {
        let name = case.file_name().unwrap().to_string_lossy();
        let expected = case.with_extension("stderr");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=bin", "--emit=metadata"])
            .args([
                "--crate-name=case",
                "--color=never",
                "--diagnostic-width=100",
            ])
            // Unused items of a case are no mistakes of it.
            .arg("-Adead_code")
            .arg("-o")
            .arg(std::env::temp_dir().join(format!("{name}-{}.rmeta", std::process::id())))
            .arg("-L")
            .arg(&self.libraries)
            .arg("--extern")
            .arg(format!("agentkit={}", self.agentkit.display()))
            .arg(case.file_name().unwrap())
            .current_dir(case.parent().unwrap())
            .output()
            .unwrap();
        if output.status.success() {
            return Err(format!("{name} compiles"));
        }
        let found = normal(&String::from_utf8(output.stderr).unwrap());
        if record {
            fs::write(&expected, found).unwrap();
            return Ok(());
        }
        let expected = fs::read_to_string(&expected)
            .map_err(|_| format!("{name} has no errors beside it; it gives:\n{found}"))?;
        if expected == found {
            Ok(())
        } else {
            Err(format!(
                "{name} gives other errors.\n---- expected\n{expected}\n---- found\n{found}"
            ))
        }
    }
}

/// The errors without what differs from build to build.
fn normal(errors: &str) -> String {
    let summaries = [
        "error: aborting due to",
        "Some errors have detailed",
        "For more information about",
    ];
    let mut normal = String::new();
    let mut others = false;
    for line in errors.lines() {
        let start = line.trim_start();
        // Which other types have a trait depends on the features of the build.
        if others && !start.starts_with("and ") && !line.contains("= note") && !line.is_empty() {
            continue;
        }
        others = start.starts_with("= help: the following other types implement");
        let summary = summaries.iter().any(|start| line.starts_with(start));
        // Long types are written to files of the compiler's.
        if summary || line.contains("full name for the type") || line.contains("full type name") {
            continue;
        }
        if others || start.starts_with("and ") {
            continue;
        }
        let arrow = ["--> ", "::: "]
            .iter()
            .find(|arrow| start.starts_with(**arrow));
        match arrow {
            // Lines and columns in files of others are theirs.
            Some(arrow) if start.contains('/') => {
                let file = start.rsplit('/').next().unwrap_or_default();
                let file = file.split(':').next().unwrap_or_default();
                normal.push_str(&format!("  {arrow}…/{file}\n"));
            }
            _ => {
                normal.push_str(line);
                normal.push('\n');
            }
        }
    }
    format!("{}\n", normal.trim_end())
}
