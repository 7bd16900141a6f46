//! Processes at nice 19 that keep the cores from going to sleep, one for each.
//!
//! An idle machine answers late because it has to wake up first. With these it is
//! awake, and still has all of its time for the client: the best that a saturated CPU
//! lane could do for its I/O lane.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde::{Deserialize, Serialize};
use twolane_benches::{child, cores};

#[derive(Serialize, Deserialize)]
pub enum Role {
    Spin,
}

/// Killed when dropped. Should this process die before it can, they end by
/// themselves: their stdin closes.
pub struct Spinners(Vec<Child>);

impl Spinners {
    /// Returns when all of them spin; an error if `nice` can't be had.
    pub fn start() -> Result<Self, String> {
        let mut spinners = Self(Vec::new());
        let this = child::command(&Role::Spin);
        for _ in 0..cores() {
            // A command, since a process can't set its nice value by safe code.
            let mut child = Command::new("nice")
                .args(["-n", "19"])
                .arg(this.get_program())
                .envs(
                    this.get_envs()
                        .filter_map(|(name, value)| Some((name, value?))),
                )
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|e| format!("no `nice` command: {e}"))?;
            let said = child.stdout.take();
            spinners.0.push(child);
            let mut line = String::new();
            let spins = said.map(|said| BufReader::new(said).read_line(&mut line));
            if !matches!(spins, Some(Ok(n)) if n > 0) {
                return Err("`nice` did not start a process".to_owned());
            }
        }
        Ok(spinners)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // An error means that it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What such a process does, until its stdin closes.
pub fn spin() -> ! {
    thread::spawn(|| {
        // Arithmetic, not `spin_loop`: a hypervisor may take the core away from a
        // guest that says that it only waits, and then the client waits too.
        let mut x = 1_u64;
        loop {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    });
    println!("spinning");
    let _ = std::io::stdout().flush();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0)
}
