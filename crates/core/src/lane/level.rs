//! One priority of a CPU lane: a queue, and the threads that serve it.
//!
//! **The path of a job.** [`Level::enqueue`] pushes the job and notifies the workers:
//! `pool/idle.rs` decides which one has to wake, and `pool/drain.rs` wakes it. A worker
//! pops the job and calls [`Runnable::run`]. A future that is not ready is suspended. It
//! is in no queue, but in the lane's registry, so that a shutdown finds it. Its waker
//! calls [`Level::enqueue`] again, or the companion runs it (`companion.rs`).
//!
//! **The threads start when they are needed** (`launcher.rs`), and jobs may come before. A submitter
//! pushes and then looks for the workers; [`Level::start`] publishes the workers and then notifies
//! them for all that is queued. Each has a `SeqCst` fence in between, so one of the two sees the other.
//!
//! **Obligations.** [liveness] A job that is queued while the lane is open is popped: some worker
//! is sure to look at the queue after the push. [liveness] A job that is pushed beside a close is
//! closed, by the control thread or by the thread that pushes. [safety] It is closed once.

use std::iter;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use giveway::Cores;
use stallwatch::Name;

use super::companion::Companion;
use super::control::Message;
use super::launcher::Threads;
use super::queue::RunQueue;
use super::{Lane, Workers, close_all, discard, thread};
use crate::error::CloseReason;
use crate::io_lane::enter_for_drop;
use crate::key::{Key, KeyName};
use crate::limits::{Limit, Limits};
use crate::metrics::{KeyUsage, Metrics};
use crate::pace::{Length, Popped, Shares};
use crate::priority::Priority;
use crate::sync::{AtomicBool, Ordering::SeqCst, fence};
use crate::task::{Counters, Runnable, Worker};

pub(crate) struct Level {
    pub(crate) lane: Arc<Lane>,
    pub(crate) priority: Priority,
    pub(crate) queue: RunQueue,
    pub(crate) limits: Arc<Limits>,
    pub(crate) counters: Counters,
    /// Of a level whose threads keep to different cores: where they run jobs.
    cores: Option<Cores>,
    /// The level one of whose threads runs short jobs of this one (`help.rs`).
    pub(super) helper: Option<Arc<Self>>,
    pub(super) is_helped: AtomicBool,
    /// Not set before the threads have started.
    workers: OnceLock<Arc<dyn Workers>>,
    /// The same.
    companion: OnceLock<Companion>,
    /// A job has asked for them.
    pub(super) is_asked: AtomicBool,
    /// These were told to end.
    is_shut_down: AtomicBool,
}

impl Level {
    pub(super) fn new(lane: &Arc<Lane>, priority: Priority, limit: Limit) -> Self {
        let settings = &lane.settings;
        let threads = settings.threads(priority);
        let shares = Arc::new(Shares::new(threads, limit.wait));
        let keeps_apart = priority == Priority::High && threads > 1;
        Self {
            lane: lane.clone(),
            priority,
            queue: RunQueue::new(shares.clone()),
            limits: Limits::new(limit, threads, &shares),
            counters: Counters::new(threads, settings.has_histograms),
            cores: keeps_apart.then(Cores::new),
            helper: None,
            is_helped: AtomicBool::new(false),
            workers: OnceLock::new(),
            companion: OnceLock::new(),
            is_asked: AtomicBool::new(false),
            is_shut_down: AtomicBool::new(false),
        }
    }

    /// Whether the next job of that site goes before those that are not known to be short.
    #[inline]
    pub(crate) fn is_short(&self, site: Name, has_key: bool) -> bool {
        let is_sorted = self.priority == Priority::Normal && self.lane.settings.short_jobs_first;
        is_sorted
            && match self.counters.sites.length(site) {
                Length::Short => true,
                Length::Unknown => !has_key && !self.queue.has_short(),
                Length::Long => false,
            }
    }

    /// `None` before the threads have started.
    pub(crate) fn workers(&self) -> Option<&dyn Workers> {
        self.workers.get().map(|workers| &**workers)
    }

    /// The same.
    pub(crate) fn companion(&self) -> Option<&Companion> {
        self.companion.get()
    }

    pub(super) fn has(&self, threads: Threads) -> bool {
        match threads {
            Threads::Workers => self.workers.get().is_some(),
            Threads::Companion => self.companion.get().is_some(),
        }
    }

    /// Its workers, which this starts and waits for if they are not there. An error if the lane is closed
    /// before, or the system gives none.
    ///
    /// # Panics
    ///
    /// In a start hook of the lane.
    #[track_caller]
    pub(crate) fn started(&self) -> Result<&dyn Workers, CloseReason> {
        self.ensure(Threads::Workers, Self::workers)
    }

    /// The same.
    #[track_caller]
    pub(crate) fn started_companion(&self) -> Result<&Companion, CloseReason> {
        self.ensure(Threads::Companion, Self::companion)
    }

    #[track_caller]
    fn ensure<'a, T>(
        &'a self,
        threads: Threads,
        find: impl Fn(&'a Self) -> Option<T>,
    ) -> Result<T, CloseReason> {
        assert!(
            !thread::is_starting(&self.lane),
            "an `on_thread_start` hook waits for threads of its own lane, and may be run by one of \
             them. Spawn a job there, and don't wait for it"
        );
        let start = || {
            // The control thread would wait for itself.
            if thread::worker_index() != Some(thread::CONTROL) {
                // Who is not the first to ask does not learn how it went.
                let _ = self.start_and_wait(threads);
            }
            find(self)
        };
        let refused = || self.lane.close_reason().unwrap_or(CloseReason::NoThreads);
        find(self).or_else(start).ok_or_else(refused)
    }

    /// Whether there is a job for its workers.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// What a thread that runs jobs of this level passes to them. `index`: if it is a worker.
    pub(crate) fn worker(&self, index: Option<usize>) -> Worker<'_> {
        let (page, shares_page) = self.counters.page(index);
        Worker {
            priority: self.priority,
            closed: &self.lane.closed,
            throttle: self.lane.throttle.as_ref(),
            page,
            shares_page,
            timings: self.counters.timings.as_deref(),
            sites: &self.counters.sites,
            times_all: self.limits.max_wait().is_some(),
            shares: self.queue.shares(),
            popped: Popped::default(),
            paused: Duration::ZERO,
            step: None,
            place: self.cores.as_ref().map(Cores::place),
            yielded: false,
            is_beside_parts: false,
        }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.counters.read(self.tokio_tasks(), self.limits.jobs())
    }

    pub(super) fn tokio_tasks(&self) -> usize {
        self.companion().map_or(0, Companion::tasks)
    }

    /// Lets these threads, which are ready, serve it. Call it once.
    pub(crate) fn start(self: &Arc<Self>, workers: Arc<dyn Workers>) {
        let workers = self.workers.get_or_init(|| workers);
        // Pairs with the fence in `enqueue`: the workers are published before the queue
        // is checked.
        fence(SeqCst);
        workers.notify(self);
        if self.lane.is_closed() {
            // The control thread may have shut its threads down before these were published.
            workers.shutdown();
        }
    }

    /// The same for its companion.
    pub(super) fn add(&self, companion: Companion) {
        let companion = self.companion.get_or_init(|| companion);
        fence(SeqCst);
        if self.lane.is_closed() {
            companion.shutdown();
        }
    }

    /// Queues a job that is new, or was woken.
    pub(super) fn enqueue(
        self: &Arc<Self>,
        job: Arc<dyn Runnable>,
        is_short: bool,
        key: Option<&Key>,
    ) {
        self.queue.push(job, is_short, key);
        // Pairs with a worker that parks or becomes inactive, with `start`, and with
        // `Lane::close`. Each of them changes its own word, and the queue is checked
        // after that.
        fence(SeqCst);
        match self.workers() {
            Some(workers) => workers.notify(self),
            None => self.ask_for_workers(),
        }
        if is_short && key.is_none() {
            self.call_for_help();
        }
        // The lane may have closed its queue before the push.
        if self.lane.is_closed() && self.lane.send_control(Message::CloseQueued).is_err() {
            // The control thread has ended. It has not seen the jobs that are in the
            // queue now.
            self.reap_queued();
        }
    }

    /// The keys that have used most.
    pub(super) fn keys(&self) -> Vec<KeyUsage> {
        let keyed = self.queue.keyed().into_iter();
        let busiest = keyed.flat_map(|keyed| keyed.busiest(KeyUsage::MOST));
        let usage = |(key, queued, computed): (KeyName, usize, Duration)| KeyUsage {
            key: key.text,
            priority: self.priority,
            queued: queued as u64,
            computed,
        };
        busiest.map(usage).collect()
    }

    /// Closes up to `most` queued jobs, which resolves their tasks. It does not drop their
    /// work, since a user destructor may block. The caller does that with
    /// [`discard`](discard), on a thread that may block.
    pub(super) fn close_queued(&self, most: usize, reason: CloseReason) -> Vec<Arc<dyn Runnable>> {
        let mut popped = Popped::default();
        let queued = iter::from_fn(|| {
            let job = self.queue.pop(&mut popped);
            self.queue.end_turn(&mut popped);
            job
        });
        let closed: Vec<_> = queued.take(most).collect();
        close_all(&closed, reason);
        closed
    }

    /// Closes the queued jobs and drops their work, on this thread.
    fn reap_queued(&self) {
        // This may be any thread.
        let _io = enter_for_drop(self.lane.io.handle.as_ref());
        discard(self.close_queued(usize::MAX, self.lane.reason_for_jobs()));
        self.lane.report_lost();
    }

    /// The control thread calls it, once the jobs are closed. May block for a moment.
    pub(super) fn shutdown(&self) {
        // First: the control thread looks at it when one of their threads has ended.
        self.is_shut_down.store(true, SeqCst);
        self.workers().into_iter().for_each(Workers::shutdown);
        self.companion().into_iter().for_each(Companion::shutdown);
    }

    /// Whether its threads, if it has any, were told to end.
    pub(super) fn is_shut_down(&self) -> bool {
        let has_none = self.workers().is_none() && self.companion().is_none();
        has_none || self.is_shut_down.load(SeqCst)
    }
}
