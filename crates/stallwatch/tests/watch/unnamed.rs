//! Nothing of it is watched, but its thread is a worker of the runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use crate::limit::time_limit;
use crate::setting::{blocks, hold, two_probes, watched};
use stallwatch::{Cause, Name, Stall, enter};

#[test]
fn a_call_that_blocks_is_told_without_a_name() {
    let _limit = time_limit();
    for workers in [2, 1] {
        let mut watched = watched(Some(workers));
        let (read, let_go) = blocks();
        let stall = watched.until_told(None, let_go, |watched| watched.run_where_a_probe_ran(read));
        assert_eq!(*stall.cause(), Cause::Blocks(Some("read")));
        assert!(stall.remedy().contains("spawn_blocking"), "{stall}");
        assert!(stall.to_string().contains("WatchLayer"), "{stall}");
        assert!(watched.watcher.stalls_by_culprit().contains(&(None, 1)));
    }
}

/// It may be one long poll, or many short ones: a probe waits for it.
#[test]
fn what_computes_while_no_worker_is_free_is_told_without_a_name() {
    let _limit = time_limit();
    for workers in [2, 1] {
        let mut watched = watched(Some(workers));
        let (let_go, told) = mpsc::channel::<()>();
        let others: Vec<_> = (1..workers).map(|_| hold(&watched.io)).collect();
        let stall = watched.until_told(None, let_go, |watched| {
            let probes = watched.probes.clone();
            watched.spawn_and_wait(async move {
                two_probes(&probes).await;
                while told.try_recv() != Err(TryRecvError::Disconnected) {}
            });
        });
        drop(others);
        assert_eq!(*stall.cause(), Cause::Computes);
        let text = stall.to_string();
        assert!(
            text.starts_with("code that is not watched computes for "),
            "{text}"
        );
        assert!(text.contains("WatchLayer"), "{text}");
        assert!(
            watched
                .watcher
                .stalls_by_culprit()
                .iter()
                .any(|it| it.0.is_none())
        );
    }
}

/// The other worker is in a poll with a name meanwhile, and until that is counted: it explains why a probe
/// waits.
#[test]
fn what_computes_without_a_name_beside_a_poll_that_has_one_is_not_told() {
    let _limit = time_limit();
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
    let computes = |stall: &Stall| stall.culprit().is_none() && *stall.cause() == Cause::Computes;
    assert!(!told.iter().any(computes), "{told:?}");
}

/// Its thread has left `block_on`, and holds up no task.
#[test]
fn a_call_outside_of_a_current_thread_runtime_is_not_told() {
    let _limit = time_limit();
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
