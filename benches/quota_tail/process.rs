//! A process inside the cgroup, seen from outside.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::cgroup::Cgroup;
use crate::contender::Contender;
use crate::slice::Settings;

/// Many periods of standing still.
const PATIENCE: Duration = Duration::from_secs(20);

/// Killed when dropped. Should we die before we can, it ends by itself.
pub struct Process {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl Process {
    /// Starts it and moves it into the cgroup; it waits for an order until
    /// then.
    pub fn start(contender: Contender, cgroup: &Cgroup, settings: &Settings) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--inside", contender.name()])
            .args(["--steps", &settings.work.steps.to_string()])
            .args(["--cores", &settings.cores.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let (answer, answers) = mpsc::channel();
        // Reads on its own, so that an answer can be waited for with a limit.
        // Ends with the process.
        thread::spawn(move || {
            let mut line = String::new();
            while matches!(said.read_line(&mut line), Ok(n) if n > 0) {
                if answer.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let process = Self {
            child,
            orders,
            answers,
        };
        cgroup.admit(process.id()).unwrap();
        process
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// # Panics
    /// If no answer comes: it has died, or hangs.
    pub fn order(&mut self, order: &str) -> Value {
        writeln!(self.orders, "{order}").unwrap();
        let answer = self.answers.recv_timeout(PATIENCE);
        let answer = answer.unwrap_or_else(|_| panic!("no answer to `{order}`"));
        serde_json::from_str(&answer).unwrap()
    }

    pub fn number(&mut self, order: &str, field: &str) -> u64 {
        number(&self.order(order), field)
    }
}

pub fn number(answer: &Value, field: &str) -> u64 {
    answer[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no `{field}` in {answer}"))
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
