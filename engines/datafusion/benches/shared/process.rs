//! A process of the bench: this program again, with a role. It tells lines on its stdout.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde::Serialize;
use twolane_benches::child;

/// It has to end when its stdin is closed.
pub struct Process {
    // `None` once it is dropped.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    child: Child,
}

impl Process {
    pub fn start(role: &impl Serialize) -> Result<Self, String> {
        let mut command = child::command(role);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(text)?;
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
        })
    }

    /// The next line that it tells.
    pub fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(0) => Err(match self.child.wait() {
                Ok(status) => format!("its process ended: {status}"),
                Err(error) => text(error),
            }),
            Ok(_) => Ok(line),
            Err(error) => Err(text(error)),
        }
    }

    /// Lets it go on.
    pub fn go(&mut self) -> Result<(), String> {
        let stdin = self.stdin.as_mut().expect("until the drop");
        writeln!(stdin, "go").map_err(text)
    }
}

impl Drop for Process {
    /// Ends it, with all that its contender left.
    fn drop(&mut self) {
        drop(self.stdin.take());
        if let Err(error) = self.child.wait() {
            eprintln!("a process of the bench: {error}");
        }
    }
}

pub fn text(error: impl Display) -> String {
    error.to_string()
}
