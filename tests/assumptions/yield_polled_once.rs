//! What does a single poll of `tokio::task::yield_now` do?
//!
//! Relied on in `src/stream/pump.rs`: it has the worker wake the task after its other tasks,
//! though the future is dropped at once, and the task stays on that worker. Without the wake a
//! stream whose source has more items stops for ever. If the wake comes at once, a source that
//! is ready all the time starves the other tasks of its worker, or moves from worker to worker
//! with each turn.
//!
//! A worker that has no other task still wakes one that sleeps, as after each search for work.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;

use crate::support::time_limit;
use crate::support::turns::{current_thread, turns_of_another};
use tokio::runtime::Builder;
use tokio::task::yield_now;

const TURNS: usize = 1_000;

/// Ends after so many turns; polls `yield_now` at the end of each, as the pump does.
async fn takes_turns(turn: impl Fn()) {
    let mut turns = 0..TURNS;
    poll_fn(|cx| {
        if turns.next().is_none() {
            return Poll::Ready(());
        }
        turn();
        let _ = pin!(yield_now()).poll(cx);
        Poll::Pending
    })
    .await;
}

#[test]
fn it_wakes_the_task_after_the_others() {
    let _limit = time_limit();
    let turns = turns_of_another(&current_thread(), takes_turns(|| ()));
    assert!(turns >= TURNS - 1, "{turns}");
}

/// With a wake that comes at once, the other worker takes it at each turn.
#[test]
fn the_task_stays_on_its_worker() {
    let _limit = time_limit();
    let io = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let (tell, told) = mpsc::channel();
    io.spawn(takes_turns(move || {
        tell.send(thread::current().id()).unwrap();
        // Long enough that a worker that was woken by the last turn sleeps again.
        (0..100).for_each(|_| thread::yield_now());
    }));
    let workers: Vec<_> = told.iter().collect();
    let moves = workers.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(workers.len(), TURNS);
    assert!(moves < TURNS / 10, "{moves}");
}
