//! When does a task that wants a Tokio mutex get its place in the queue?
//!
//! Relied on in `src/io/owned/slot.rs` (`lock`): at the first poll of `lock_owned`, also where
//! the budget of the task is used up, if the poll is `unconstrained`; and it keeps that place,
//! in whichever order and by whichever waker it is polled later. So calls on an `IoOwned` run in
//! the order in which they were made. Without this they run in the order in which their tasks
//! are polled: a commit may come before the statement that it is to commit.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::support::time_limit;
use crate::support::turns::current_thread;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::coop;

type Locking = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>>>>;

fn poll(lock: &mut Locking) -> Poll<OwnedMutexGuard<()>> {
    lock.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn at_its_first_poll() {
    let _limit = time_limit();
    let mutex = Arc::new(Mutex::new(()));
    let mut held = mutex.clone().try_lock_owned().unwrap();
    let mut waiting: Vec<Locking> = current_thread().block_on(async {
        let mut cx = Context::from_waker(Waker::noop());
        while pin!(coop::consume_budget()).poll(&mut cx).is_ready() {}
        let locks = (0..5).map(|_| {
            let mut lock: Locking = Box::pin(coop::unconstrained(mutex.clone().lock_owned()));
            assert!(poll(&mut lock).is_pending());
            lock
        });
        locks.collect()
    });
    // One that gives up keeps none from its turn.
    drop(waiting.remove(1));
    while !waiting.is_empty() {
        assert!(waiting.iter_mut().rev().all(|lock| poll(lock).is_pending()));
        drop(held);
        let (first, later) = waiting.split_first_mut().unwrap();
        assert!(later.iter_mut().rev().all(|lock| poll(lock).is_pending()));
        let Poll::Ready(locked) = poll(first) else {
            panic!("the first is the next");
        };
        held = locked;
        drop(waiting.remove(0));
    }
}
