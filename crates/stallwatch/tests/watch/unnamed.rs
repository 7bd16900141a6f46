//! Nothing of it is watched, but its thread is a worker of the runtime.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use stallwatch::{Cause, Name, Stall, enter};
use tokio::runtime::Runtime;
use tokio::task::yield_now;

use crate::computing::compute_for;
use crate::setting::{Watched, blocks, hold, two_probes, watched};

/// Whether the stall is told that a test waits for: then this is dropped.
fn is_told(waits: &Weak<()>) -> bool {
    waits.strong_count() == 0
}

fn compute(waits: &Weak<()>) {
    while !is_told(waits) {}
}

fn computes_unnamed(stall: &Stall) -> bool {
    stall.culprit().is_none() && *stall.cause() == Cause::Computes
}

/// So many tasks poll this until it is told of them, beside what `begin` has done to the runtime.
fn told_of<T>(
    mut watched: Watched,
    begin: impl FnOnce(&Runtime) -> T,
    tasks: usize,
    poll: impl Fn(&Weak<()>) + Clone + Send + 'static,
) -> Stall {
    let let_go = Arc::new(());
    let waits = Arc::downgrade(&let_go);
    let _begun = begin(&watched.io);
    let stall = watched.until_told(computes_unnamed, let_go, |watched| {
        let all = (0..tasks).map(|_| {
            let (probes, waits, poll) = (watched.probes.clone(), waits.clone(), poll.clone());
            watched.io.spawn(async move {
                two_probes(&probes).await;
                while !is_told(&waits) {
                    poll(&waits);
                    yield_now().await;
                }
            })
        });
        for task in all.collect::<Vec<_>>() {
            watched.io.block_on(task).unwrap();
        }
    });
    assert!(watched.has_counted_unnamed());
    stall
}

#[test]
fn a_call_that_blocks_is_told_without_a_name() {
    for workers in [2, 1] {
        let mut watched = watched(Some(workers));
        let (read, let_go) = blocks();
        let reads = |stall: &Stall| {
            stall.culprit().is_none() && *stall.cause() == Cause::Blocks(Some("read"))
        };
        let stall =
            watched.until_told(reads, let_go, |watched| watched.run_where_a_probe_ran(read));
        assert!(stall.remedy().contains("spawn_blocking"), "{stall}");
        assert!(stall.to_string().contains("WatchLayer"), "{stall}");
        assert!(watched.has_counted_unnamed());
    }
}

/// One long poll, while no other worker is free.
#[test]
fn what_computes_while_a_probe_waits_is_told_without_a_name() {
    for workers in [2, 1] {
        let others = |io: &Runtime| (1..workers).map(|_| hold(io)).collect::<Vec<_>>();
        let stall = told_of(watched(Some(workers)), others, 1, compute);
        let text = stall.to_string();
        let begins = text.starts_with("code that is not watched computes for ");
        assert!(begins, "{text}");
        assert!(text.contains("in one poll or in many"), "{text}");
        assert!(text.contains("WatchLayer"), "{text}");
    }
}

/// Another worker is free, and answers the probes.
#[test]
fn a_poll_that_computes_for_a_second_beside_a_free_worker_is_told() {
    let mut watched = watched(Some(2));
    let let_go = Arc::new(());
    let waits = Arc::downgrade(&let_go);
    watched.until_told(computes_unnamed, let_go, |watched| {
        watched.run_where_a_probe_ran(move || compute(&waits));
    });
    assert!(watched.has_counted_unnamed());
}

/// None of them is as long as the threshold.
#[test]
fn many_polls_that_add_up_are_told() {
    told_of(
        watched(Some(2)),
        |_| (),
        64,
        |_| {
            compute_for(Duration::from_millis(5));
        },
    );
}

/// The workers are never free, and turn to the driver all the time.
#[test]
fn what_is_only_busy_is_not_told() {
    is_only_busy(&watched(Some(2)), 20);
}

/// One worker gets a core seldom and briefly, so that it stands, and probes wait for it. The
/// other one is busy meanwhile. (Without `Run::may_lack_core` it fails beside other programs' builds, and
/// not on a machine that is quiet. What decides has its cases in `unnamed.rs` and `thread.rs`.)
#[test]
fn what_is_busy_beside_a_worker_without_a_core_is_not_told() {
    let cores = thread::available_parallelism().unwrap().get();
    let spin = || {
        let (gate, goes_on) = mpsc::channel::<()>();
        thread::spawn(move || while goes_on.try_recv() == Err(TryRecvError::Empty) {});
        gate
    };
    // They end when this is dropped.
    let _others = (0..cores).map(|_| spin()).collect::<Vec<_>>();
    let watched = watched(Some(2));
    watched.spawn_and_wait(async { rustix::process::nice(15).unwrap() });
    is_only_busy(&watched, 50);
}

fn is_only_busy(watched: &Watched, probes: usize) {
    let done = Arc::new(AtomicBool::new(false));
    let tasks = (0..64).map(|_| {
        let done = done.clone();
        watched.io.spawn(async move {
            while !done.load(SeqCst) {
                yield_now().await;
            }
        })
    });
    let tasks = tasks.collect::<Vec<_>>();
    for _ in 0..probes {
        watched.io.block_on(two_probes(&watched.probes));
    }
    done.store(true, SeqCst);
    for task in tasks {
        watched.io.block_on(task).unwrap();
    }
    let told = watched.stalls.try_iter().find(computes_unnamed);
    assert!(told.is_none(), "{told:?}");
}

/// The other worker is in a poll with a name meanwhile, and until that is counted: it explains why a probe
/// waits.
#[test]
fn what_computes_without_a_name_beside_a_poll_that_has_one_is_not_told() {
    let watched = watched(Some(2));
    let compute = watched.compute("named");
    let (ready, is_ready) = mpsc::channel();
    let (began, has_begun) = mpsc::channel();
    let done = Arc::new(AtomicBool::new(false));
    let (probes, is_done) = (watched.probes.clone(), done.clone());
    let computes = watched.io.spawn(async move {
        two_probes(&probes).await;
        ready.send(()).unwrap();
        has_begun.recv().unwrap();
        compute();
        is_done.store(true, SeqCst);
    });
    // From here on that worker takes no other task.
    is_ready.recv().unwrap();
    watched.spawn_and_wait(async move {
        let _in = enter(Name::named("named"));
        began.send(()).unwrap();
        while !done.load(SeqCst) {}
    });
    watched.io.block_on(computes).unwrap();
    watched.stall_of("named");
    let told: Vec<_> = watched.stalls.try_iter().collect();
    assert!(!told.iter().any(computes_unnamed), "{told:?}");
}

/// Its thread has left `block_on`, and holds up no task.
#[test]
fn a_call_outside_of_a_current_thread_runtime_is_not_told() {
    let watched = watched(None);
    watched.io.block_on(two_probes(&watched.probes));
    let (read, let_go) = blocks();
    // Another thread has two stalls told meanwhile, so the watch has looked for long enough.
    let io = watched.io.handle().clone();
    let computes = ["one", "two"].map(|name| (name, watched.compute(name)));
    let beside = thread::spawn(move || {
        for (name, compute) in computes {
            let _entered = io.enter();
            let _in = enter(Name::named(name));
            compute();
        }
        drop(let_go);
    });
    read();
    beside.join().unwrap();
    watched.stall_of("one");
    watched.stall_of("two");
    watched.assert_no_call_was_told();
}
