//! The time limit of a test.

use std::io::Write;
use std::sync::mpsc;
use std::time::Duration;

/// A hang is a bug of the first rank: a test that holds this for longer than
/// three minutes takes the whole process down, by name.
pub fn time_limit() -> TimeLimit {
    let (alive, watch) = mpsc::channel::<()>();
    let test = thread_name();
    std::thread::spawn(move || {
        // The test drops its end, in whatever way it ends.
        if watch.recv_timeout(Duration::from_secs(180)) == Err(mpsc::RecvTimeoutError::Timeout) {
            // Not by `eprintln!`, which the harness would capture.
            let _ = writeln!(std::io::stderr(), "the test {test} hangs: aborting");
            std::process::abort();
        }
    });
    TimeLimit { _alive: alive }
}

pub struct TimeLimit {
    _alive: mpsc::Sender<()>,
}

pub fn thread_name() -> String {
    std::thread::current().name().unwrap_or("?").to_owned()
}
