//! A database of its own for every test, on the back end that `AGENTKIT_TEST_URL` names: a file of
//! SQLite where there is none, otherwise a schema (PostgreSQL) or a database (MariaDB, MySQL) of
//! the server. What is left on a server is thrown away with it.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use sea_orm::{ConnectionTrait as _, DatabaseConnection};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A database that nobody else uses.
pub struct TestDatabase {
    url: String,
    file: Option<PathBuf>,
}

fn name() -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    format!(
        "agentkit_{}_{number}_{}",
        std::process::id(),
        now.as_micros() % 1_000_000
    )
}

impl TestDatabase {
    /// On the back end under test.
    pub fn new() -> Self {
        match std::env::var("AGENTKIT_TEST_URL") {
            Ok(server) if !server.is_empty() && !server.starts_with("sqlite") => Self::on(&server),
            _ => Self::file(),
        }
    }

    /// On SQLite, whatever is under test: for programs that open a file themselves.
    pub fn file() -> Self {
        let path = std::env::temp_dir().join(format!("{}.db", name()));
        Self {
            url: format!("sqlite://{}?mode=rwc", path.display()),
            file: Some(path),
        }
    }

    fn on(server: &str) -> Self {
        let name = name();
        let (create, url) = if server.starts_with("postgres") {
            let join = if server.contains('?') { '&' } else { '?' };
            (
                format!("CREATE SCHEMA {name}"),
                format!("{server}{join}options[search_path]={name}"),
            )
        } else {
            // The same server, and the database instead of the one in the URL.
            let (base, _) = server.rsplit_once('/').unwrap();
            (format!("CREATE DATABASE {name}"), format!("{base}/{name}"))
        };
        let server = server.to_owned();
        // A thread of its own, since tests are in a runtime already.
        let created = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let database = sea_orm::Database::connect(server).await.unwrap();
                database.execute_unprepared(&create).await.unwrap();
                database.close().await.unwrap();
            });
        });
        created.join().unwrap();
        Self { url, file: None }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The file, on SQLite.
    pub fn path(&self) -> &PathBuf {
        self.file.as_ref().unwrap()
    }

    /// An expression of SQL for 32 bytes of zero.
    pub fn zeros(&self) -> &'static str {
        if self.file.is_some() {
            "zeroblob(32)"
        } else if self.url.starts_with("postgres") {
            "decode(repeat('00', 32), 'hex')"
        } else {
            "unhex(repeat('00', 32))"
        }
    }

    /// A connection beside the library's, as someone with access to the database has.
    pub async fn connect(&self) -> DatabaseConnection {
        let database = sea_orm::Database::connect(&self.url).await.unwrap();
        if self.file.is_some() {
            let busy = "PRAGMA busy_timeout = 15000";
            database.execute_unprepared(busy).await.unwrap();
        }
        database
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        for suffix in ["", "-wal", "-shm"] {
            let mut path = file.clone().into_os_string();
            path.push(suffix);
            let _ = std::fs::remove_file(path);
        }
    }
}
