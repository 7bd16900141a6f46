//! The dedicated runtime's fetchers at the queue.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic::{Ordering::SeqCst, fence};
use loom::thread;

use crate::model;
use crate::relay::{Call, Relay};
use crate::sync::Queue;

/// A lane of the runtime backend, as in `backend/fetcher.rs`. A fetcher runs on the
/// thread that spawns it, when that has done what it was at.
struct Fetched {
    queue: Queue<()>,
    relay: Relay,
    /// Counted outside of the model, so that it orders nothing there.
    ran: AtomicUsize,
}

/// What a fetcher does after its job, if there are more.
#[derive(Clone, Copy)]
enum Then {
    Waits,
    /// As one that was let pass.
    Leaves,
}

impl Fetched {
    fn push(&self) -> bool {
        self.queue.push(());
        fence(SeqCst);
        self.calls()
    }

    fn calls(&self) -> bool {
        self.relay.call(|| 0) == Call::Spawn
    }

    fn push_and_fetch(&self, then: Then) {
        let mut waiting = usize::from(self.push());
        while waiting > 0 {
            waiting -= 1;
            waiting += self.take_turn(then);
        }
    }

    /// How many fetchers wait after that on this thread's account.
    fn take_turn(&self, then: Then) -> usize {
        self.relay.begin_turn();
        if self.queue.pop().is_none() {
            return 0;
        }
        let spawned = usize::from(!self.queue.is_empty() && self.calls());
        self.ran.fetch_add(1, SeqCst);
        if matches!(then, Then::Waits) && !self.queue.is_empty() {
            self.relay.wait();
            return spawned + 1;
        }
        spawned
    }
}

fn no_job_is_left(threads: usize, mine: Then, others: Then) {
    const JOBS_OF_MINE: usize = 2;
    model(move || {
        let lane = Arc::new(Fetched {
            queue: Queue::new(),
            relay: Relay::new(threads),
            ran: AtomicUsize::new(0),
        });
        let other = thread::spawn({
            let lane = lane.clone();
            move || lane.push_and_fetch(others)
        });
        for _ in 0..JOBS_OF_MINE {
            lane.push_and_fetch(mine);
        }
        other.join().unwrap();
        assert_eq!(lane.ran.load(SeqCst), JOBS_OF_MINE + 1);
        // And no fetcher is said to wait that does not.
        for _ in 0..threads {
            assert!(lane.push());
        }
    });
}

#[test]
fn no_job_is_left_by_fetchers_that_wait_again() {
    no_job_is_left(1, Then::Waits, Then::Waits);
    no_job_is_left(2, Then::Waits, Then::Waits);
}

#[test]
fn no_job_is_left_by_fetchers_that_leave() {
    no_job_is_left(1, Then::Leaves, Then::Leaves);
    no_job_is_left(1, Then::Waits, Then::Leaves);
    no_job_is_left(2, Then::Leaves, Then::Waits);
}
