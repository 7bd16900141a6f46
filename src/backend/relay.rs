//! Which tasks of the dedicated runtime come for the lane's jobs.
//!
//! A *fetcher* is a task that takes jobs out of the lane's queue and runs them,
//! one in each of its turns. Between its turns it *waits* in Tokio's own queues,
//! as does one that was spawned just now.
//!
//! As long as some wait, nobody else need be told of a job: they look at the
//! queue when they have their turn, and if there is more than one takes, another
//! must wait before it runs what it took. One would be enough to lose no job, also
//! where a job blocks in place and Tokio has brought another thread. But
//!
//! - Tokio does not tell a worker of a task that is about to sleep, nor does that
//!   one look once more, if another was searching: the task may then rest with a
//!   worker that computes. The next that is spawned wakes the sleeper, which finds
//!   both. So at least as many may wait as the lane has threads, each is told; and
//!   where no more may wait, a [`Call::Nudge`] now and then makes up for it.
//! - Tokio's other tasks (what jobs `tokio::spawn`, jobs that wait) have a place
//!   each in its queues. So as many may wait as there are of those.
//!
//! No job is left without a fetcher. A pusher pushes, then looks how many wait; a
//! fetcher that has its turn says that it waits no more, then looks at the queue.
//! Each has a `SeqCst` fence in between, so one of the two sees the other. (Loom
//! model in `tests/loom`.)

// `untold` is a hint and `Relaxed`. All else is `SeqCst`, for the order that the above
// rests on.
use crate::sync::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence, fence_of_loom};

/// Pushes to one nudge, where as many fetchers wait as may.
const PUSHES_PER_NUDGE: usize = 16;

/// What the caller has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Nothing,
    /// Spawn a fetcher, which waits from now on.
    Spawn,
    /// See that Tokio looks whether one of its workers sleeps that should not.
    Nudge,
}

pub(crate) struct Relay {
    waiting: AtomicUsize,
    threads: usize,
    /// Calls that told nobody. A hint: some may be missed.
    untold: AtomicUsize,
}

impl Relay {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            threads,
            untold: AtomicUsize::new(0),
        }
    }

    /// There is a job: after a push and a fence, or by a fetcher that has left it
    /// in the queue. `tasks`: all that the runtime has; half of them, or less, are
    /// fetchers then.
    pub(crate) fn call(&self, tasks: impl Fn() -> usize) -> Call {
        // For a fetcher: what it saw of the queue it saw with `SeqCst` accesses.
        fence_of_loom();
        let mut waiting = self.waiting.load(SeqCst);
        while waiting < self.threads || waiting < tasks() / 2 {
            let one_more = waiting + 1;
            match self
                .waiting
                .compare_exchange(waiting, one_more, SeqCst, SeqCst)
            {
                Ok(_) => return Call::Spawn,
                Err(now) => waiting = now,
            }
        }
        let untold = self.untold.load(Relaxed) + 1;
        let is_time = untold >= PUSHES_PER_NUDGE;
        self.untold.store(if is_time { 0 } else { untold }, Relaxed);
        if is_time { Call::Nudge } else { Call::Nothing }
    }

    /// A fetcher has its turn. It looks at the queue after this.
    pub(crate) fn begin_turn(&self) {
        self.waiting.fetch_sub(1, SeqCst);
        fence(SeqCst);
    }

    /// Its turn is over, and it will have another.
    pub(crate) fn wait(&self) {
        self.waiting.fetch_add(1, SeqCst);
    }
}
