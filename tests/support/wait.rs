//! Waits for what this process's threads become.

use std::time::Duration;
use std::{fs, thread};

use twolane::Handle;

/// Whether a thread has this name, of which the kernel keeps 15 bytes.
pub fn has_thread(named: &str) -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // An error: it has ended meanwhile.
    let mut names =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.any(|name| name.trim_end() == named)
}

/// Looks once a millisecond, and parks meanwhile: a thread that spins at nice 0 would keep the
/// core from the niced threads that it waits for.
pub fn wait_until(mut is: impl FnMut() -> bool) {
    while !is() {
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// Until no job has anything to do. A snapshot is not of one moment while jobs come and go; two
/// that agree are.
pub fn wait_for_idle(cpu: &Handle) {
    let idle = || {
        let now = cpu.metrics();
        (now.queued + now.running == 0).then(|| now.to_string())
    };
    wait_until(|| idle().is_some_and(|now| idle() == Some(now)));
}
