//! Waits for what this process's threads become.

use std::time::Duration;
use std::{fs, thread};

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
