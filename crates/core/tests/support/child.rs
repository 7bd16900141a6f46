//! A test's other half, in a process of its own: whose environment and cgroup
//! can be chosen, and which may come to an end.

use std::fmt::Display;
use std::io::Write;
use std::process::{Command, Stdio};

use super::limit::limit_this_thread;

const MARK: &str = "TWOLANE_TEST_CHILD";

/// Whether this process is such a half; waits until its parent lets it begin.
pub fn is_child() -> bool {
    let is_child = std::env::var_os(MARK).is_some();
    if is_child {
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
    is_child
}

/// What the child tells its parent; one line.
pub fn found(what: impl Display) {
    println!("found {what}");
}

/// Runs `test` of this binary alone in a new process, after `place` has seen
/// its number, and returns what it found.
pub fn run(test: &str, set: impl FnOnce(&mut Command), place: impl FnOnce(u32)) -> String {
    limit_this_thread();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(MARK, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    set(&mut child);
    let mut child = child.spawn().unwrap();
    place(child.id());
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = output.split_once("found ").expect(&output).1;
    found.lines().next().unwrap().to_owned()
}
