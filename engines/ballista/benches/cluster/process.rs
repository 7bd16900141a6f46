//! The processes of a cluster: this program again, each with a role.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use twolane_benches::child;
use twolane_benches::watchdog::Watchdog;

use crate::{executor, scheduler};

/// For one turn, at the largest scale.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The level of what a process says on its stderr, `error` by default.
const LOG: &str = "TWOLANE_BENCH_LOG";

#[derive(Debug, Serialize, Deserialize)]
pub enum Role {
    Scheduler(scheduler::Role),
    Executor(executor::Role),
}

struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        eprintln!("{} {}: {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}

/// The child's side.
pub fn run(role: Role) -> ! {
    let watchdog = Watchdog::start();
    log::set_logger(&Stderr).expect("the first logger");
    let level = std::env::var(LOG).ok().and_then(|level| level.parse().ok());
    log::set_max_level(level.unwrap_or(log::LevelFilter::Error));
    match role {
        Role::Scheduler(role) => {
            watchdog.allow("the scheduler".to_owned(), PATIENCE);
            scheduler::run(role)
        }
        Role::Executor(role) => {
            watchdog.allow(role.id.clone(), PATIENCE);
            executor::run(role)
        }
    }
}

/// The bench's side; its drop ends the process.
pub struct Process {
    name: String,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: PathBuf,
}

impl Process {
    pub fn start(name: &str, role: &Role, folder: &Path) -> Result<Self, String> {
        let of = |error: std::io::Error| format!("{name}: {error}");
        let stderr = folder.join(format!("{name}.stderr"));
        let mut command = child::command(role);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(&stderr).map_err(of)?);
        // Unoptimized, the planners' frames are large, and Ballista's threads have no setting.
        command.env("RUST_MIN_STACK", (8 << 20).to_string());
        let mut child = command.spawn().map_err(of)?;
        Ok(Self {
            name: name.to_owned(),
            stdin: child.stdin.take().expect("it is piped"),
            stdout: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
            stderr,
        })
    }

    /// What it says next.
    pub fn hear<A: DeserializeOwned>(&mut self) -> Result<A, String> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(0) => Err(self.error("it closed its stdout")),
            Ok(_) => serde_json::from_str(&line).map_err(|error| self.error(error)),
            Err(error) => Err(self.error(error)),
        }
    }

    pub fn ask<A: DeserializeOwned>(&mut self, question: &impl Serialize) -> Result<A, String> {
        let question = serde_json::to_string(question).expect("JSON");
        writeln!(self.stdin, "{question}").map_err(|error| self.error(error))?;
        self.hear()
    }

    /// An error if it has ended, or a thread of it panicked: Ballista takes some tasks that panic
    /// for tasks at their end.
    pub fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) if self.said().contains("panicked at") => Err(self.error("it panicked")),
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.error(status)),
            Err(error) => Err(self.error(error)),
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<(), String> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(|error| self.error(error))
    }

    fn error(&self, why: impl Display) -> String {
        format!("{}: {why}{}", self.name, self.said())
    }

    /// What its stderr has, for an error.
    pub fn said(&self) -> String {
        let said = std::fs::read_to_string(&self.stderr).unwrap_or_default();
        format!("\n{} says: {}", self.name, said.trim_end())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.kill();
    }
}
