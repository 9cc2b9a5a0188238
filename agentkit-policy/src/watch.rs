//! Policy files: read as a whole, reloaded when they change.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::declaration::PolicySource;
use crate::engine::PolicyEngine;
use crate::load_error::LoadError;

/// Most files that one set is read from.
const MAX_FILES: usize = 10_000;

/// Where the policies of a set are kept: files, and directories whose `*.cedar` files count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFiles {
    paths: Vec<PathBuf>,
}

/// Why policy files could not be put in force.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// A file or a directory cannot be read.
    Read {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is more than may be loaded.
    TooMuch {
        /// What there is too much of, and the remedy.
        what: String,
    },
    /// The policies do not load.
    Load(LoadError),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, .. } => {
                write!(f, "the policies in `{}` cannot be read", path.display())
            }
            Self::TooMuch { what } => f.write_str(what),
            Self::Load(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            // The text of a load error is shown already.
            Self::TooMuch { .. } | Self::Load(_) => None,
        }
    }
}

impl PolicyFiles {
    /// These files and directories; a directory is not searched below its first level.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self {
            paths: paths.into_iter().map(Into::into).collect(),
        }
    }

    /// Reads everything, files of a directory in the order of their names.
    ///
    /// # Errors
    ///
    /// If anything cannot be read, is not UTF-8, or is more than `max_bytes` together.
    pub fn read(&self, max_bytes: usize) -> Result<Vec<PolicySource>, FileError> {
        let mut files = Vec::new();
        for path in &self.paths {
            if path.is_dir() {
                files.extend(in_directory(path)?);
            } else {
                files.push(path.clone());
            }
        }
        if files.len() > MAX_FILES {
            return Err(FileError::TooMuch {
                what: format!("{} policy files, at most {MAX_FILES} are read", files.len()),
            });
        }
        let mut left = max_bytes;
        let mut sources = Vec::with_capacity(files.len());
        for path in files {
            let text = read_file(&path, left).map_err(|source| FileError::Read {
                path: path.clone(),
                source,
            })?;
            left = left
                .checked_sub(text.len())
                .ok_or_else(|| FileError::TooMuch {
                    what: format!(
                        "the policies hold more than {max_bytes} bytes, raise \
                     `Settings::max_policy_bytes` or remove policies"
                    ),
                })?;
            sources.push(PolicySource::new(path.display().to_string(), text));
        }
        Ok(sources)
    }

    /// The directories in which something can change.
    #[cfg(feature = "watch")]
    fn directories(&self) -> std::collections::BTreeSet<PathBuf> {
        self.paths
            .iter()
            .map(|path| {
                let parent = || {
                    path.parent()
                        .filter(|parent| !parent.as_os_str().is_empty())
                };
                if path.is_dir() {
                    path.clone()
                } else {
                    parent().unwrap_or(Path::new(".")).to_owned()
                }
            })
            .collect()
    }
}

fn in_directory(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    let fail = |source| FileError::Read {
        path: path.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "cedar")
            && path.is_file()
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads no more than one byte beyond what is allowed.
fn read_file(path: &Path, most: usize) -> std::io::Result<String> {
    let mut text = String::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    std::fs::File::open(path)?
        .take(most.saturating_add(1))
        .read_to_string(&mut text)?;
    Ok(text)
}

impl PolicyEngine {
    /// Reads the files and puts them in force, in one step, like [`reload`](Self::reload).
    ///
    /// # Errors
    ///
    /// If they cannot be read or do not load; the old set stays in force then.
    pub fn reload_files(&self, files: &PolicyFiles) -> Result<(), FileError> {
        let sources = files.read(self.settings().max_policy_bytes)?;
        self.reload(&sources).map_err(FileError::Load)
    }
}

#[cfg(feature = "watch")]
pub use watching::{Watch, WatchError, watch};

#[cfg(feature = "watch")]
mod watching {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::thread::JoinHandle;
    use std::time::Duration;

    use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

    use super::{FileError, PolicyFiles};
    use crate::engine::PolicyEngine;

    /// A file that is being written changes several times; this long nothing must change.
    const QUIET: Duration = Duration::from_millis(50);
    /// Nobody waits for quiet longer than this.
    const LONGEST: usize = 40;

    /// The files cannot be watched.
    #[derive(Debug)]
    pub struct WatchError(notify::Error);

    impl std::fmt::Display for WatchError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the policy files cannot be watched")
        }
    }

    impl std::error::Error for WatchError {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    /// Watches until it is dropped.
    #[derive(Debug)]
    pub struct Watch {
        watcher: Option<RecommendedWatcher>,
        thread: Option<JoinHandle<()>>,
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            // Without the watcher the channel closes, and the thread ends.
            self.watcher = None;
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
        }
    }

    /// Reloads an engine whenever its files change. A reload that fails keeps the old set in
    /// force; `told` hears of every reload and must not drop the [`Watch`].
    ///
    /// # Errors
    ///
    /// If the directories of the files cannot be watched.
    pub fn watch(
        engine: Arc<PolicyEngine>,
        files: PolicyFiles,
        mut told: impl FnMut(Result<(), FileError>) + Send + 'static,
    ) -> Result<Watch, WatchError> {
        let (tell, changes) = channel();
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // Reading the files is no reason to read them again. What the system lost may have
                // been a change.
                if !matches!(&event, Ok(event) if event.kind.is_access()) {
                    let _ = tell.send(());
                }
            })
            .map_err(WatchError)?;
        for directory in files.directories() {
            watcher
                .watch(&directory, RecursiveMode::NonRecursive)
                .map_err(WatchError)?;
        }
        let thread = std::thread::spawn(move || {
            while next_change(&changes) {
                told(engine.reload_files(&files));
            }
        });
        Ok(Watch {
            watcher: Some(watcher),
            thread: Some(thread),
        })
    }

    /// Waits for a change and for the quiet after it; false when nothing is watched any more.
    fn next_change(changes: &Receiver<()>) -> bool {
        if changes.recv().is_err() {
            return false;
        }
        for _ in 0..LONGEST {
            match changes.recv_timeout(QUIET) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        true
    }
}
