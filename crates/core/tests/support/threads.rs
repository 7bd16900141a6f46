//! What the kernel tells of this process's threads.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The line `key:` of a thread's `status`.
fn status(task: &Path, key: &str) -> Option<String> {
    let status = fs::read_to_string(task.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.strip_prefix(':')?.trim().to_owned())
}

/// Reads `key` of each thread whose name begins with `prefix`, by number and name.
/// (The kernel keeps the first 15 bytes of a name.)
fn of_threads(prefix: &str, key: &str) -> BTreeMap<(u32, String), String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let all = tasks.filter_map(|task| {
        // Another test's thread may end meanwhile.
        let task = task.ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let name = name.trim_end().to_owned();
        let number = task.file_name().to_str()?.parse().ok()?;
        let value = || status(&task.path(), key);
        name.starts_with(prefix)
            .then(value)?
            .map(|value| ((number, name), value))
    });
    all.collect()
}

/// The cores that each of these threads may run on, as in "0-3,8".
pub(crate) fn cores(prefix: &str) -> BTreeMap<(u32, String), String> {
    of_threads(prefix, "Cpus_allowed_list")
}

/// How often each of these threads went to sleep so far.
pub(crate) fn sleeps(prefix: &str) -> BTreeMap<(u32, String), u64> {
    let read = of_threads(prefix, "voluntary_ctxt_switches");
    let counts = read.into_iter();
    counts
        .map(|(thread, n)| (thread, n.parse().unwrap()))
        .collect()
}

/// Whether one of these threads sleeps now.
pub(crate) fn is_asleep(prefix: &str) -> bool {
    let states = of_threads(prefix, "State");
    states.values().any(|state| state.starts_with('S'))
}
