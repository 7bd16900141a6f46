//! What if the system has no threads to give to a priority?

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::support::cgroup::Group;
use crate::support::{self, BOTH, cpu_lane, time_limit};
use twolane::{Backend, Priority};

/// How many threads there are, once those that were started in vain have gone:
/// only the ones named here are left. (A newborn one has its maker's name.)
fn settled_threads() -> usize {
    const LEFT: [&str; 5] = [
        "twolane-starter",
        "twolane-ticker",
        "cpu-control",
        "cpu-0",
        "cpu-1",
    ];
    // The process's first thread, and this one, as the test harness names it.
    let mine = ["self", "thread-self"].map(|me| fs::read_to_string(format!("/proc/{me}/comm")));
    let mine = mine.map(Result::unwrap);
    let is_left = |name: &&String| mine.contains(name) || LEFT.contains(&name.trim_end());
    loop {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| fs::read_to_string(task?.path().join("comm")));
        // An error: it ended while we looked.
        if let Ok(names) = names.collect::<Result<Vec<_>, _>>() {
            let starters = names.iter().filter(|name| name.contains("starter"));
            if names.iter().all(|name| is_left(&name)) && starters.count() == 1 {
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
    group.set("pids.max", settled_threads());
    let give_way = async {
        twolane::yield_if_due().await;
        3
    };
    assert_eq!(cpu.spawn(give_way).wait().unwrap(), 3);
    // And it is tried anew, once there are some.
    group.set("pids.max", "max");
    assert_eq!(high.spawn_cpu(|| 4).wait().unwrap(), 4, "{backend:?}");
    let other_ran = Arc::new(AtomicBool::new(false));
    let long = [(); 2].map(|()| {
        let other_ran = other_ran.clone();
        cpu.spawn(async move {
            while !other_ran.load(SeqCst) {
                twolane::yield_if_due().await;
            }
        })
    });
    cpu.spawn_cpu(move || other_ran.store(true, SeqCst))
        .detach();
    for task in long {
        task.wait().unwrap();
    }
    assert!(cpu.shutdown().wait().is_empty());
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
        let found = support::child::run("out_of_threads::child", set, |id| group.add(id));
        assert_eq!(found, "all as it should be");
    }
}
