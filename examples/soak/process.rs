//! What the process holds: its threads and its memory, as `/proc` tells (so on
//! Linux only; elsewhere nothing is checked).

use std::fs;

#[derive(Default)]
pub struct Process {
    resident_then: u64,
}

impl Process {
    pub fn note_resident(&mut self) {
        self.resident_then = resident_kib();
    }

    pub fn check_resident(&self) -> (u64, u64) {
        let (then, now) = (self.resident_then, resident_kib());
        let bound = then + then / 10 + 64 * 1024;
        assert!(
            then == 0 || now <= bound,
            "the resident set grew from {then} KiB after a tenth of the rounds to {now} KiB"
        );
        (then, now)
    }
}

/// 0 where the system does not report it.
pub fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The names of all threads but the two that the library keeps for the process.
pub fn thread_names() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let names = names.map(|name| name.trim_end().to_owned());
    // The kernel cuts a name after fifteen bytes.
    let stays = |name: &String| !matches!(&**name, "twolane-starter" | "twolane-ticker");
    names.filter(stays).collect()
}

/// One line for each thread, and what gdb says, if it is there.
pub fn stacks() -> String {
    let mut told = String::new();
    for task in fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let read = |file: &str| {
            let text = fs::read_to_string(task.path().join(file)).unwrap_or_default();
            text.trim_end().to_owned()
        };
        let status = read("status");
        let state = status.lines().find(|line| line.starts_with("State:"));
        told += &format!(
            "thread {:>8} {:<16} {:<24} {}\n",
            task.file_name().to_string_lossy(),
            read("comm"),
            state.unwrap_or("").replace('\t', " "),
            read("wchan"),
        );
    }
    let gdb = std::process::Command::new("gdb")
        .args(["-p", &std::process::id().to_string(), "-batch", "-nx"])
        .args(["-ex", "thread apply all bt 25"])
        .output();
    if let Ok(output) = gdb {
        told += &String::from_utf8_lossy(&output.stdout);
    }
    told
}
