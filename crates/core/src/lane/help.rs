//! [`Help`]: a thread of `High` runs short jobs of `Normal` while all threads of that compute long ones.
//!
//! A short job passes the long ones that are queued (`queue.rs`), and would still wait for one that
//! *runs*. So who queues a short job, and finds that each thread runs a long one, queues a `Help` at
//! `High`. That is a job of the lane's own: each of its steps pops one short job and runs one step of
//! it. Then it goes behind the jobs of `High` that are ready. It ends when no short job waits, or when
//! a thread of `Normal` does not run a long one. What the helped jobs compute is no part of the shares
//! of short and long ones (`pace/shares.rs`): the threads of `Normal` have the long ones meanwhile.
//!
//! Nothing rests on it: the threads of `Normal` are notified of each job as without help. A short job
//! that comes while a thread is about to begin a long one, or has run one of an unknown line for less
//! than a millisecond, finds no help. It waits until the next short job calls, or a long one ends. If
//! the system has no threads for `High`, there is no help from then on: each short job would ask for
//! them anew.
//!
//! **Which thread.** One at a time, and only if there are two: a job that is taken for a short one, or
//! tried as one, may be long. While jobs of keys are queued, at either priority, there is no help: they
//! have an order. The job remains one of `Normal`, in what it counts for, in what
//! `Handle::current` is inside of it. But the thread's rayon pool is that of `High`: parts of the job
//! that rayon runs on its other threads are at `High`, and an `install` waits for the long jobs.

use std::sync::Arc;

use super::{Level, Submitter, thread};
use crate::pace::Popped;
use crate::sync::{Ordering::SeqCst, fence};
use crate::task::{Cancel, Runnable, StepEnd, Worker};

/// Of the level whose short jobs it runs.
struct Help(Arc<Level>);

impl Level {
    /// A short job was queued, and the workers notified.
    #[inline]
    pub(super) fn call_for_help(self: &Arc<Self>) {
        let is_needed = || self.queue.may_help() && self.counters.all_run_long();
        let has_none = || !self.is_helped.load(SeqCst);
        let must_call = || has_none() && is_needed() && !self.is_helped.swap(true, SeqCst);
        if let Some(helper) = self.helper.as_ref().filter(|_| must_call()) {
            helper.enqueue(Arc::new(Help(self.clone())), false, None);
        }
    }
}

impl Runnable for Help {
    fn run(self: Arc<Self>, worker: &mut Worker<'_>) -> StepEnd {
        worker.get_ready(|| false);
        let level = self.0.clone();
        let helps = worker.popped.turn.is_none() && level.counters.all_run_long();
        let Some(job) = helps.then(|| level.queue.pop_short()).flatten() else {
            if let Some(high) = &level.helper {
                // That of the jobs of `High` that have no key.
                high.queue.end_turn(&mut worker.popped);
            }
            level.is_helped.store(false, SeqCst);
            fence(SeqCst);
            // A short job may have come since.
            if helps {
                level.call_for_help();
            }
            return StepEnd::Ended;
        };
        let mut popped = Popped::default();
        // As those of keys, it has no part in the shares.
        (popped.is_short, popped.has_key) = (true, true);
        let mut worker = Worker {
            popped,
            // This thread has waited for the quota already, as one of `High`.
            throttle: None,
            ..level.worker(None)
        };
        let own = thread::ask_own(|own| Submitter::new(own.levels.clone(), level.priority));
        let entered = thread::enter(&mut { own }, false);
        if let StepEnd::Requeue { job, yielded } = job.run(&mut worker) {
            level.queue.put_back(job, yielded);
            fence(SeqCst);
            level.workers().into_iter().for_each(|it| it.notify(&level));
        }
        drop(thread::leave(entered));
        let (job, yielded): (Arc<dyn Runnable>, _) = (self, true);
        StepEnd::Requeue { job, yielded }
    }
}

impl Cancel for Help {}
