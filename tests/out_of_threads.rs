//! What if the system has no threads to give to a priority?

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::process::Command;

use support::cgroup::Group;
use support::{BOTH, cpu_lane, time_limit};
use twolane::{Backend, Priority};

/// How many threads there are, once those that were started in vain have gone.
fn settled_threads() -> usize {
    loop {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| fs::read_to_string(task?.path().join("comm")));
        // An error: it ended while we looked.
        if let Ok(names) = names.collect::<Result<Vec<_>, _>>() {
            let passing =
                |name: &String| name.starts_with("cpu-opener") || name.starts_with("cpu-high");
            if !names.iter().any(passing) {
                return names.len();
            }
        }
        std::thread::yield_now();
    }
}

/// In a process whose group has no more threads to give than the test says.
#[test]
fn child() {
    let _limit = time_limit();
    if !support::child::is_child() {
        return;
    }
    let group = Group::at(std::env::var_os("TWOLANE_TEST_GROUP").unwrap());
    let backend = match std::env::var("TWOLANE_TEST_BACKEND").as_deref() {
        Ok("Rayon") => Backend::Rayon,
        _ => Backend::Runtime,
    };
    let io = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let cpu = cpu_lane(backend, 2, io.handle());
    let high = cpu.handle().with_priority(Priority::High);
    // With not one; with the one that starts the others; with that, and one of
    // the two workers. (A Tokio runtime that is built then waits for ever for
    // the one that it got.)
    for more in 0..=2 {
        // What this process has now, and so many more.
        group.set("pids.max", settled_threads() + more);
        let jobs = [high.spawn_cpu(|| 1), high.spawn_cpu(|| 2)];
        for job in jobs {
            let error = job.wait().unwrap_err();
            assert!(error.is_out_of_threads(), "{backend:?}, {more}: {error}");
            assert!(error.to_string().contains("pids.max"), "{error}");
        }
    }
    // What has threads goes on.
    assert_eq!(cpu.spawn_cpu(|| 3).wait().unwrap(), 3);
    // And it is tried anew, once there are some.
    group.set("pids.max", "max");
    assert_eq!(high.spawn_cpu(|| 4).wait().unwrap(), 4, "{backend:?}");
    assert_eq!(cpu.shutdown().wait(), 0);
    support::child::found("all as it should be");
}

#[test]
fn jobs_end_with_an_error_that_says_so() {
    let _limit = time_limit();
    for backend in BOTH {
        let Some(group) = Group::new("pids") else {
            return;
        };
        let set = |child: &mut Command| {
            child.env("TWOLANE_TEST_GROUP", group.path());
            child.env("TWOLANE_TEST_BACKEND", format!("{backend:?}"));
        };
        let found = support::child::run("child", set, |id| group.add(id));
        assert_eq!(found, "all as it should be");
    }
}
