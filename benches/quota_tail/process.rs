//! A process inside the cgroup, seen from outside.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use twolane_benches::cgroup::Cgroup;
use twolane_benches::child::{self, Killed};

use crate::inside::Role;

/// Many periods of standing still.
const PATIENCE: Duration = Duration::from_secs(20);

/// Killed when dropped. Should the bench die before it can, the process ends by itself.
pub struct Process {
    _child: Killed,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl Process {
    /// Starts it and moves it into the cgroup; it waits for an order until then.
    pub fn start(role: &Role, cgroup: &Cgroup) -> Result<Self, String> {
        let mut command = child::command(role);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Killed(command.spawn().unwrap());
        let orders = child.0.stdin.take().unwrap();
        let said = BufReader::new(child.0.stdout.take().unwrap());
        let (answer, answers) = mpsc::channel();
        // Reads on its own, so that an answer can be waited for with a limit. Ends with
        // the process.
        thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                if answer.send(line).is_err() {
                    return;
                }
            }
        });
        cgroup.admit(child.0.id())?;
        Ok(Self {
            _child: child,
            orders,
            answers,
        })
    }

    /// # Panics
    /// If no answer comes: the process has died, or hangs.
    pub fn ask(&mut self, order: &str) -> [u64; 2] {
        writeln!(self.orders, "{order}").unwrap();
        let answer = self.answers.recv_timeout(PATIENCE);
        let answer = answer.unwrap_or_else(|_| panic!("no answer to `{order}`"));
        serde_json::from_str(&answer).unwrap()
    }
}
