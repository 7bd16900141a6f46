//! [`Help`]: a thread of `High` runs short jobs of `Normal` while all threads of that compute long ones.
//!
//! A short job passes the long ones that are queued (`queue.rs`), and would still wait for one that
//! *runs*. So who queues a short job, and finds that each thread runs a long one, queues a `Help` at
//! `High`. That is a job of the lane's own: each of its steps pops one short job and runs one step of
//! it. Then it goes behind the jobs of `High` that are ready. It ends when no short job waits, or when
//! the others have their turn (`pace/shares.rs`).
//!
//! Nothing rests on it: the threads of `Normal` are notified of each job as without help. So where it
//! misses a job that comes as it ends, this one waits until the next one calls, or a long one ends.
//!
//! **Which thread.** One at a time, and only where `High` has another one: a job that is taken for a
//! short one may be long. The job remains one of `Normal`, in what it counts for, in what
//! `Handle::current` is inside of it. But the rayon pool of the thread is that of `High`. With
//! `Backend::Runtime` no thread helps, since there a job may be bound to the Tokio runtime of its
//! priority.

use std::sync::Arc;

use super::{Level, Submitter, thread};
use crate::pace::Popped;
use crate::sync::Ordering::SeqCst;
use crate::task::{Cancel, Runnable, StepEnd, Worker};

/// Of the level whose short jobs it runs.
struct Help(Arc<Level>);

impl Level {
    /// A short job was queued, and the workers notified.
    #[inline]
    pub(super) fn call_for_help(self: &Arc<Self>) {
        let may_help = |_: &&Arc<Self>| !self.is_helped.load(SeqCst);
        let helper = self.helper.as_ref().filter(may_help);
        let helper = helper.filter(|_| self.queue.has_short() && self.counters.all_run_long());
        if let Some(helper) = helper.filter(|_| !self.is_helped.swap(true, SeqCst)) {
            helper.enqueue(Arc::new(Help(self.clone())), false, None);
        }
    }
}

impl Runnable for Help {
    fn run(self: Arc<Self>, worker: &mut Worker<'_>) -> StepEnd {
        worker.get_ready(|| false);
        let level = self.0.clone();
        let mut popped = Popped::default();
        let Some(job) = level.queue.pop_short(&mut popped) else {
            level.is_helped.store(false, SeqCst);
            return StepEnd::Ended;
        };
        let mut worker = Worker {
            popped,
            // This thread has waited for the quota already, as one of `High`.
            throttle: None,
            ..level.worker(None)
        };
        let own = thread::ask_own(|own| Submitter::new(own.levels.clone(), level.priority));
        let entered = thread::enter(&mut { own }, false);
        if let StepEnd::Requeue { job, yielded } = job.run(&mut worker) {
            let is_short = !yielded && job.is_short();
            level.enqueue(job, is_short, None);
        }
        drop(thread::leave(entered));
        let (job, yielded): (Arc<dyn Runnable>, _) = (self, true);
        StepEnd::Requeue { job, yielded }
    }
}

impl Cancel for Help {}
