//! Does a long future give way, and does it come back?

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::support::busy::Busy;
use crate::support::lanes;
use twolane_core::{JoinErrorKind, Task};

/// It is where a future that never waits sees that it was cancelled, or that its lane shuts down.
/// So does one that only yields, and is alone.
#[test]
fn a_long_future_sees_its_end() {
    for only_yields in [false, true] {
        let lanes = lanes(1);
        let endless = || {
            let (started, running) = std::sync::mpsc::channel();
            let task = lanes.cpu.spawn(async move {
                started.send(()).unwrap();
                loop {
                    match only_yields {
                        true => twolane_core::yield_now().await,
                        false => twolane_core::yield_if_due().await,
                    }
                }
            });
            running.recv().unwrap();
            task
        };
        let cancelled: Task<()> = endless();
        cancelled.abort();
        assert!(cancelled.wait().unwrap_err().is_cancelled());
        let shut_down: Task<()> = endless();
        assert!(lanes.cpu.shutdown().wait().is_empty());
        let error = shut_down.wait().unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::Shutdown);
    }
}

/// In one queue for all, a small job that comes late would wait for a slice of
/// each long one that has begun before it.
#[test]
fn a_late_job_goes_before_those_that_gave_way() {
    const LONG: usize = 20;
    let lanes = lanes(1);
    let (started, over) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    // How often a long future had a turn.
    let turns = Arc::new(AtomicUsize::new(0));
    let (late, waited) = std::sync::mpsc::channel();
    let long = |n| {
        let (started, over, turns) = (started.clone(), over.clone(), turns.clone());
        let mut late = (n == 0).then(|| late.clone());
        let counter = turns.clone();
        let mut job = Box::pin(async move {
            started.fetch_add(1, SeqCst);
            while !over.load(SeqCst) {
                twolane_core::yield_if_due().await;
                if started.load(SeqCst) < LONG {
                    continue;
                }
                // Once all have begun, the first calls for a small job, in the
                // middle of its own slice.
                if let Some(late) = late.take() {
                    let (turns, before) = (turns.clone(), turns.load(SeqCst));
                    let small = async move { late.send(turns.load(SeqCst) - before).unwrap() };
                    twolane_core::Handle::current().spawn(small).detach();
                }
            }
        });
        lanes.cpu.spawn(std::future::poll_fn(move |cx| {
            counter.fetch_add(1, SeqCst);
            job.as_mut().poll(cx)
        }))
    };
    let long: Vec<_> = (0..LONG).map(long).collect();
    let waited = waited.recv().unwrap();
    over.store(true, SeqCst);
    for job in long {
        job.wait().unwrap();
    }
    // One whose turn it may have been.
    assert!(waited <= 1, "{waited} of {LONG} went before it");
}

/// Jobs that keep coming don't keep it from coming back.
#[test]
fn a_steady_arrival_does_not_starve_it() {
    let lanes = lanes(1);
    let busy = Busy::with(3, lanes.cpu.handle());
    let ran = busy.count();
    let long = lanes.cpu.spawn(async move {
        // Three times it gave way, and another job ran.
        for _ in 0..3 {
            let before = ran();
            while ran() == before {
                twolane_core::yield_if_due().await;
            }
        }
    });
    long.wait().unwrap();
}

/// Two that give way take turns, on the one thread there is.
#[test]
fn two_that_yield_take_turns() {
    let lanes = lanes(1);
    let turns = Arc::new(std::sync::Mutex::new(Vec::new()));
    let both = Arc::new(AtomicUsize::new(0));
    let player = |name: char| {
        let (turns, both) = (turns.clone(), both.clone());
        lanes.cpu.spawn(async move {
            both.fetch_add(1, SeqCst);
            while both.load(SeqCst) < 2 {
                twolane_core::yield_now().await;
            }
            for _ in 0..100 {
                turns.lock().unwrap().push(name);
                twolane_core::yield_now().await;
            }
        })
    };
    let (a, b) = (player('a'), player('b'));
    a.wait().unwrap();
    b.wait().unwrap();
    let turns = turns.lock().unwrap();
    let again = turns.windows(2).filter(|pair| pair[0] == pair[1]).count();
    // At most once, at the start: one may have seen both first.
    assert!(turns.len() == 200 && again <= 1, "{turns:?}");
}
