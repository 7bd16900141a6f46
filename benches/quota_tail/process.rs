//! A process inside the cgroup, seen from outside.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};

use twolane_benches::cgroup::Cgroup;
use twolane_benches::child::{self, Killed};

use crate::inside::Role;

/// Killed when dropped. Should the bench die before it can, the process ends by itself.
pub struct Process {
    _child: Killed,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it and moves it into the cgroup; it waits for an order until then.
    pub fn start(role: &Role, cgroup: &Cgroup) -> Result<Self, String> {
        let mut command = child::command(role);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Killed(command.spawn().unwrap());
        let orders = child.0.stdin.take().unwrap();
        let answers = BufReader::new(child.0.stdout.take().unwrap());
        cgroup.admit(child.0.id())?;
        Ok(Self {
            _child: child,
            orders,
            answers,
        })
    }

    /// The contest's watchdog ends a wait for one that hangs.
    ///
    /// # Panics
    /// If no answer comes: the process has died.
    pub fn ask(&mut self, order: &str) -> [u64; 2] {
        writeln!(self.orders, "{order}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no answer to `{order}`"))
    }
}
