//! Does a paused clock stand while a closure is on the blocking pool?
//!
//! Relied on in `crates/core/src/task/clock_hold.rs` (`Builder::hold_paused_clock`): an idle runtime
//! does not advance its paused clock while a closure of `spawn_blocking` runs or is queued, also
//! if its handle was dropped and another thread submitted it, and advances it once that has
//! ended. Without this a timeout around a job fires at once in a test with a paused clock.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::support::time_limit;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// For long enough that a runtime that takes itself for idle has moved its clock.
fn compute() {
    for _ in 0..2_000 {
        thread::yield_now();
    }
}

/// Computes on a plain thread, and holds the clock until that has told its end.
fn on_a_thread() -> oneshot::Receiver<()> {
    let (tell, told) = oneshot::channel();
    let (until_dropped, wait) = mpsc::channel::<()>();
    drop(Handle::current().spawn_blocking(move || wait.recv()));
    thread::spawn(move || {
        compute();
        tell.send(()).unwrap();
        drop(until_dropped);
    });
    told
}

#[tokio::test(start_paused = true)]
async fn it_stands_while_a_closure_waits() {
    let _limit = time_limit();
    let start = Instant::now();
    for _ in 0..10 {
        let told = timeout(SECOND, on_a_thread()).await;
        told.expect("the clock stands").unwrap();
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    // No closure is left, or none soon.
    sleep(SECOND).await;
    assert_eq!(start.elapsed(), SECOND);
}

/// One thread hands it over to the next.
#[tokio::test(start_paused = true)]
async fn it_stands_while_closures_follow_each_other() {
    let _limit = time_limit();
    let io = Handle::current();
    let (tell, told) = oneshot::channel();
    let (until_dropped, wait) = mpsc::channel::<()>();
    drop(io.spawn_blocking(move || wait.recv()));
    thread::spawn(move || {
        let mut held = until_dropped;
        for _ in 0..10 {
            let (next, wait) = mpsc::channel::<()>();
            drop(io.spawn_blocking(move || wait.recv()));
            held = next;
            compute();
        }
        tell.send(()).unwrap();
        drop(held);
    });
    let told = timeout(SECOND, told).await;
    told.expect("the clock stands").unwrap();
}

/// The tests above are not met by chance.
#[tokio::test(start_paused = true)]
async fn it_runs_ahead_without() {
    let _limit = time_limit();
    let (_never, told) = oneshot::channel::<()>();
    let (_until_dropped, wait) = mpsc::channel::<()>();
    thread::spawn(move || wait.recv());
    assert!(timeout(SECOND, told).await.is_err());
}
