//! The lane's threads: what runs on them, and what runs when they start and
//! stop.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};

use crate::priorities::ALL;
use crate::support::at_end::at_thread_end;
use crate::support::{Lanes, Stuck, lanes, lanes_with, nothing, thread_name, use_all};
use rayon::prelude::*;
use twolane_core::{Builder, Priority};

/// One pool for everything that computes: a `par_iter` on rayon's global pool
/// would be a second one, with as many threads again. A rayon child has no job of its own, but it is
/// on its job's threads, and what it submits is as urgent.
#[test]
fn parallel_iterators_in_a_job_use_the_threads_of_its_priority() {
    let Lanes { cpu, io: _io } = lanes(2);
    for (priority, prefix) in [(Priority::Normal, "cpu-"), (Priority::Low, "cpu-low-")] {
        let job = cpu.handle().with_priority(priority).spawn_cpu(|| {
            let both_have_begun = Barrier::new(2);
            let child = |_| {
                // Each of the two has a worker to itself.
                both_have_begun.wait();
                (thread_name(), twolane_core::spawn_cpu(thread_name))
            };
            let children = (0..2).into_par_iter().with_max_len(1).map(child);
            children.collect::<Vec<_>>()
        });
        let (names, submitted): (BTreeSet<_>, Vec<_>) = job.wait().unwrap().into_iter().unzip();
        let expected = [0, 1].map(|n| format!("{prefix}{n}"));
        assert_eq!(names, expected.clone().into());
        for task in submitted {
            assert!(expected.contains(&task.wait().unwrap()));
        }
    }
}

/// `(what, thread)`, in the order of the calls.
type Calls = Arc<Mutex<Vec<(&'static str, String)>>>;

fn noting(calls: &Calls, what: &'static str) -> impl Fn() + Send + Sync + 'static {
    let calls = calls.clone();
    move || calls.lock().unwrap().push((what, thread_name()))
}

/// A start hook that has its thread note its end.
fn noting_the_end(calls: &Calls) -> impl Fn() + Send + Sync + 'static {
    let calls = calls.clone();
    move || {
        // There, a thread has no name any more.
        let (calls, name) = (calls.clone(), thread_name());
        at_thread_end(move || calls.lock().unwrap().push(("stop", name)));
    }
}

fn on(calls: &Calls, thread: &str) -> Vec<&'static str> {
    let calls = calls.lock().unwrap();
    let here = calls.iter().filter(|(_, name)| name == thread);
    here.map(|(what, _)| *what).collect()
}

/// Of a lane with two for each priority.
const THREADS: [&str; 6] = [
    "cpu-high-0",
    "cpu-high-1",
    "cpu-0",
    "cpu-1",
    "cpu-low-0",
    "cpu-low-1",
];

/// Tokio's own hooks *replace* one another: the second would cost the first.
/// And a panic in one must not cost the thread, or the hooks after it.
#[test]
fn hooks_run_once_per_thread_in_order_and_may_panic() {
    let calls = Calls::default();
    let hooks = |lane: Builder| {
        lane.on_thread_start(noting(&calls, "start 1"))
            .on_thread_start(|| panic!("a start hook's own fault"))
            .on_thread_start(noting(&calls, "start 2"))
            .on_thread_start(noting_the_end(&calls))
    };
    let Lanes { cpu, io: _io } = lanes_with(2, hooks);
    // `build` returns when the threads are ready: nothing to wait for.
    for thread in THREADS {
        let is_in_use = ["cpu-0", "cpu-1"].contains(&thread);
        assert_eq!(on(&calls, thread).len(), if is_in_use { 2 } else { 0 });
    }
    use_all(&cpu);
    for thread in THREADS {
        assert_eq!(on(&calls, thread), ["start 1", "start 2"]);
    }
    let job = cpu.spawn_cpu(noting(&calls, "job"));
    job.wait().unwrap();
    cpu.shutdown().wait();
    let mut jobs = 0;
    for thread in THREADS {
        let mut calls = on(&calls, thread);
        jobs += calls.iter().filter(|what| **what == "job").count();
        calls.retain(|what| *what != "job");
        let all = ["start 1", "start 2", "stop"];
        assert_eq!(calls, all, "{thread}");
    }
    assert_eq!(jobs, 1);
    let others = calls.lock().unwrap().len() - THREADS.len() * 3 - 1;
    assert_eq!(others, 0, "{:?}", calls.lock().unwrap());
}

/// A hook that looks around finds the lane's own context, prepared before it.
#[test]
fn a_start_hook_can_use_the_lane() {
    let ran = Arc::new(AtomicUsize::new(0));
    let (first, count) = std::sync::mpsc::channel();
    let seen = ran.clone();
    let hook = move || {
        let (seen, first) = (seen.clone(), first.clone());
        let job = twolane_core::spawn_cpu(move || {
            seen.fetch_add(1, SeqCst);
            first.send(thread_name()).unwrap();
        });
        job.detach();
    };
    let Lanes { cpu, io: _io } = lanes_with(2, |lane| lane.on_thread_start(hook));
    use_all(&cpu);
    for _ in THREADS {
        assert!(count.recv().unwrap().starts_with("cpu-"));
    }
    cpu.shutdown().wait();
    assert_eq!(ran.load(SeqCst), THREADS.len());
}

/// The threads of the lane's own Tokio runtime, and of its blocking pool, are threads of the lane too:
/// they run the hooks, and shutting down waits for them.
#[test]
fn threads_of_the_lanes_tokio_runtime_run_the_hooks() {
    let calls = Calls::default();
    let Lanes { cpu, io: _io } = lanes_with(2, |lane| {
        lane.on_thread_start(noting(&calls, "start"))
            .on_thread_start(noting_the_end(&calls))
    });
    let blocking = async { tokio::task::spawn_blocking(thread_name).await.unwrap() };
    let job = cpu.spawn(twolane_core::in_cpu_context(blocking));
    let blocking = job.wait().unwrap();
    assert_eq!(on(&calls, &blocking), ["start"]);
    // The two workers of the lane, those of its runtime, and this one.
    assert_eq!(calls.lock().unwrap().len(), 5);
    cpu.shutdown().wait();
    for thread in [
        "cpu-0",
        "cpu-1",
        "cpu-tokio-0",
        "cpu-tokio-1",
        "cpu-tokio-2",
    ] {
        assert_eq!(on(&calls, thread), ["start", "stop"], "{thread}");
    }
}

/// Too deep for the 2 MiB of a thread's default stack.
#[test]
fn a_large_stack_is_large_on_every_thread_that_runs_jobs() {
    fn depth(n: u32) -> u32 {
        let frame = std::hint::black_box([n; 256]);
        if n == 0 { 0 } else { 1 + depth(frame[0] - 1) }
    }
    let (cpu, _lanes) = lanes_with(1, |lane| lane.thread_stack_size(64 << 20)).and_handle();
    for priority in ALL {
        let deep = cpu.with_priority(priority).spawn_cpu(|| depth(10_000));
        assert_eq!(deep.wait().unwrap(), 10_000, "{priority:?}");
    }
}

#[test]
fn a_priority_may_have_another_number() {
    let Lanes { cpu, io: _io } = lanes_with(2, |lane| {
        lane.worker_threads_at(Priority::Low, 1)
            .worker_threads_at(Priority::High, 3)
    });
    for (priority, threads) in ALL.into_iter().zip([3, 2, 1]) {
        let handle = cpu.handle().with_priority(priority);
        assert_eq!(handle.worker_threads(), threads);
        assert_eq!(handle.metrics().threads, threads as u64);
        // As many run at the same time, and no more.
        let held: Vec<_> = (0..threads).map(|_| Stuck::start(&handle)).collect();
        let waits = handle.spawn_cpu(nothing);
        assert_eq!(handle.metrics().running, threads as u64);
        assert!(!waits.is_finished());
        held.into_iter().for_each(Stuck::end);
        waits.wait().unwrap();
    }
}
