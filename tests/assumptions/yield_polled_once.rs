//! What does a single poll of `tokio::task::yield_now` do?
//!
//! Relied on in `src/stream/pump.rs`: it has the worker wake the task after its other tasks,
//! though the future is dropped at once, and wakes no other worker for that. Without the wake a
//! stream whose source has more items stops for ever. If the wake comes at once, a source that
//! is ready all the time starves the other tasks of its worker, or a worker that sleeps is woken
//! for each turn.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::thread::{self, ThreadId};

use crate::support::time_limit;
use crate::support::turns::{current_thread, turns_of_another};
use tokio::runtime::Builder;
use tokio::task::yield_now;

const TURNS: usize = 1_000;

/// Ends after so many turns; polls `yield_now` in each, as the pump does.
async fn takes_turns() {
    let mut turns = 0..TURNS;
    poll_fn(|cx| {
        if turns.next().is_none() {
            return Poll::Ready(());
        }
        let _ = pin!(yield_now()).poll(cx);
        Poll::Pending
    })
    .await;
}

#[test]
fn it_wakes_the_task_after_the_others() {
    let _limit = time_limit();
    let turns = turns_of_another(&current_thread(), takes_turns());
    assert!(turns >= TURNS - 1, "{turns}");
}

#[test]
fn it_wakes_no_other_worker() {
    let _limit = time_limit();
    // How often each worker woke.
    let woke = Arc::new(Mutex::new(HashMap::<ThreadId, usize>::new()));
    let count = woke.clone();
    let io = Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_unpark(move || {
            *count
                .lock()
                .unwrap()
                .entry(thread::current().id())
                .or_default() += 1;
        })
        .build()
        .unwrap();
    let (tell, told) = mpsc::channel();
    io.spawn(async move {
        takes_turns().await;
        tell.send(()).unwrap();
    });
    told.recv().unwrap();
    drop(io);
    let woke = woke.lock().unwrap();
    let in_all: usize = woke.values().sum();
    // Some for the start, and the end.
    assert!(in_all < TURNS / 10, "{woke:?}");
}
