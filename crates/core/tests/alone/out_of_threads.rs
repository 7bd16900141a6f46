//! What if the system has some threads to give to a lane, and not all?
//!
//! Relied on in `crates/core/src/lane/companion.rs` (`try_threads`): Tokio starts its workers one by one
//! inside `Builder::build`, and takes no thread besides. So `n + 1` threads that start before
//! show that `build` will not fail, which matters since it does not return an error: it panics,
//! and, if some of the workers have started, waits for them for ever while it unwinds. If
//! `build` takes more threads, or other ones, a lane on a system that is short of threads hangs
//! in `CpuRuntime::build`. Once the oldest Tokio returns an error instead, `try_threads` can go.
//!
//! When the kernel takes a thread that has ended out of the count, is for it to decide. (That a
//! system without a thread is an error of `build`, is tested in `tests/system`.)

use std::error::Error;
use std::fs;

use crate::support::wait::wait_until;
use crate::support::{few_threads, gives};

/// How many threads there are, once those that were started in vain have gone:
/// only the ones named here are left. (A newborn one has its maker's name.)
fn settled_threads() -> usize {
    const LEFT: [&str; 3] = ["giveway-starter", "twolane-ticker", "giveway-ticker"];
    // The process's first thread, and this one, as the test harness names it.
    let mine = ["self", "thread-self"].map(|me| fs::read_to_string(format!("/proc/{me}/comm")));
    let mine = mine.map(Result::unwrap);
    let is_left = |name: &String| mine.contains(name) || LEFT.contains(&name.trim_end());
    let mut threads = 0;
    wait_until(|| {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| fs::read_to_string(task?.path().join("comm")));
        // An error: it ended while we looked.
        let names = names.collect::<Result<Vec<_>, _>>().unwrap_or_default();
        threads = names.len();
        threads > 0 && names.iter().all(is_left)
    });
    threads
}

/// In a process whose group has no more threads to give than the test says.
#[test]
#[ignore = "not a test by itself"]
fn child_that_is_short_of_threads() {
    few_threads::child(|group, lane| {
        // With none; with some of the process's own; with some of the lane's. (A Tokio runtime that
        // is built with one of two workers waits for ever for that one.)
        let mut more = 0;
        let cpu = loop {
            // What this process has now, and so many more.
            group.limit_threads(settled_threads() + more);
            match lane().build() {
                Ok(cpu) => break cpu,
                // Of the system, not of a setting.
                Err(error) if error.source().is_some() => more += 1,
                Err(other) => panic!("{more}: {other}"),
            }
        };
        // The threads of the process are there: a control thread, a launcher, and two workers. One
        // system may give a thread more than it has promised.
        assert!((3..=5).contains(&more), "{more}");
        assert_eq!(cpu.spawn_cpu(gives(1)).wait().unwrap(), 1);
        assert!(cpu.shutdown().wait().is_empty());
    });
}

#[test]
#[ignore = "counts what the kernel does: .ci/nightly"]
fn build_returns_an_error_however_few_threads_are_missing() {
    few_threads::in_groups("out_of_threads::child_that_is_short_of_threads");
}
