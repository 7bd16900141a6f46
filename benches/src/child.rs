//! Contenders in a process of their own: this program again, with a role.
//!
//! The role is JSON in an environment variable, so that the child's command line
//! is free, and the answer is JSON on its stdout.

use std::process::{Child, Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

const ROLE: &str = "TWOLANE_BENCH_ROLE";

/// The role of this process; `None` if it is the bench itself.
///
/// # Panics
/// If the variable holds something else.
pub fn role<R: DeserializeOwned>() -> Option<R> {
    let role = std::env::var(ROLE).ok()?;
    Some(serde_json::from_str(&role).expect("a role of this bench"))
}

/// The command of a child with that role.
pub fn command<R: Serialize>(role: &R) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, serde_json::to_string(role).unwrap());
    command
}

/// A child that is killed when this is dropped.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a child to its end and returns its answer. An error says how it ended instead.
///
/// # Panics
/// If the answer is something else.
pub fn ask<R: Serialize, A: DeserializeOwned>(role: &R) -> Result<A, String> {
    let run = command(role).stderr(Stdio::inherit()).output();
    let run = run.map_err(|error| error.to_string())?;
    if !run.status.success() {
        return Err(format!("its process ended with {}", run.status));
    }
    Ok(serde_json::from_slice(&run.stdout).expect("the answer of a child"))
}

/// The child's side of [`ask`]: ends the process, and with it what is left of the contender.
pub fn answer<A: Serialize>(answer: &A) -> ! {
    println!("{}", serde_json::to_string(answer).unwrap());
    std::process::exit(0)
}

/// Has this process end with the bench, which closes its stdin.
pub fn end_with_parent() {
    std::thread::spawn(|| {
        for _ in std::io::stdin().lines() {}
        std::process::exit(0)
    });
}
