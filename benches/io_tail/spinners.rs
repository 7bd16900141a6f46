//! Processes at nice 19 that keep the cores from going to sleep, one for each.
//!
//! An idle machine answers late because it has to wake up first. With these it is
//! awake, and still has all of its time for the client: the best that a saturated CPU
//! lane could do for its I/O lane.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use serde::{Deserialize, Serialize};
use twolane_benches::child::{self, Killed};
use twolane_benches::cores;

#[derive(Serialize, Deserialize)]
pub enum Role {
    Spin,
}

/// Returns when all of them spin; an error if `nice` can't be had. Should this process die before
/// it can kill them, they end by themselves: their stdin closes.
pub fn start() -> Result<Vec<Killed>, String> {
    let this = child::command(&Role::Spin);
    let one = || {
        // A command, since a process can't set its nice value by safe code.
        let mut nice = Command::new("nice");
        nice.args(["-n", "19"]).arg(this.get_program());
        let given = |(name, value)| Some((name, value?));
        nice.envs(this.get_envs().filter_map(given));
        let child = nice.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = Killed(child.map_err(|e| format!("no `nice` command: {e}"))?);
        let said = child.0.stdout.take();
        let mut line = String::new();
        let spins = said.map(|said| BufReader::new(said).read_line(&mut line));
        match spins {
            Some(Ok(n)) if n > 0 => Ok(child),
            _ => Err("`nice` did not start a process".to_owned()),
        }
    };
    (0..cores()).map(|_| one()).collect()
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
