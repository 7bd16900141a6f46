//! A lane for the models of one job, so its registry has one place. The worker is the thread that
//! calls [`Level::run_next`].

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicBool, fence};
use stallwatch::{Entered, Name};

use crate::error::CloseReason;
use crate::key::Key;
use crate::pace::{Popped, Shares};
use crate::priority::Priority;
use crate::sync::Queue;
use crate::task::{Counters, Event, RegistryKey, Runnable, Schedule, StepEnd, Worker};

/// As `lane/`, with one worker.
pub(crate) struct Lane {
    pub(crate) queue: Queue<Arc<dyn Runnable>>,
    closed: AtomicBool,
    /// The standard library's atomics, which order nothing in a model.
    counters: Counters,
    shares: Shares,
    /// The standard library's mutex, which orders nothing in a model. (In the lane, the
    /// registry's lock orders more.)
    registered: Mutex<Option<Arc<dyn Runnable>>>,
    /// The job's first step has begun. What sees it is ordered behind that, as what a step hands a
    /// waker to.
    pub(crate) is_begun: AtomicBool,
    /// A Tokio task of a job's, which the lane drops when it shuts down.
    pub(crate) part_is_dropped: AtomicBool,
}

#[derive(Clone)]
pub(crate) struct Level(pub(crate) Arc<Lane>);

impl Level {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Lane {
            queue: Queue::new(),
            closed: AtomicBool::new(false),
            counters: Counters::new(1, false),
            shares: Shares::new(1, None),
            registered: Mutex::new(None),
            is_begun: AtomicBool::new(false),
            part_is_dropped: AtomicBool::new(false),
        }))
    }

    /// Pops a job, if there is one, and runs one step.
    pub(crate) fn run_next(&self) -> bool {
        let lane = &*self.0;
        let Some(job) = lane.queue.pop() else {
            return false;
        };
        let (page, shares_page) = lane.counters.page(Some(0));
        let mut worker = Worker {
            priority: Priority::Normal,
            closed: &lane.closed,
            throttle: None,
            page,
            shares_page,
            timings: None,
            times_all: false,
            sites: &lane.counters.sites,
            shares: &lane.shares,
            popped: Popped::default(),
            paused: Duration::ZERO,
            step: None,
            place: None,
            yielded: false,
            is_beside_parts: false,
        };
        match job.run(&mut worker) {
            StepEnd::Ended | StepEnd::Suspended => {}
            // As an active worker does: it looks at the queue again.
            StepEnd::Requeue { job, .. } => lane.queue.push(job),
        }
        true
    }

    fn close_queued(&self) {
        while let Some(job) = self.0.queue.pop() {
            close(&*job);
        }
    }

    /// What the closing thread and the control thread do.
    pub(crate) fn shut_down(&self) {
        self.0.closed.store(true, SeqCst);
        fence(SeqCst);
        self.close_queued();
        let registered = self.0.registered.try_lock().unwrap().clone();
        if let Some(job) = registered {
            close(&*job);
        }
        self.0.part_is_dropped.store(true, SeqCst);
    }

    /// One job has ended, once, and the counters agree.
    #[track_caller]
    pub(crate) fn check_end(&self) {
        let count = |event| self.0.counters.sum(event);
        let closed = [Event::Cancelled, Event::Expired, Event::Dropped].map(count);
        let closed: u64 = closed.iter().sum();
        let (queued, suspended) = (count(Event::ClosedQueued), count(Event::ClosedSuspended));
        let came = count(Event::Submitted) + count(Event::Woken);
        assert_eq!(came, count(Event::Begun) + queued, "queued");
        let stopped = count(Event::Suspended) + count(Event::Completed);
        assert_eq!(count(Event::Begun), stopped, "running");
        let resumed = count(Event::Woken) + suspended;
        assert_eq!(count(Event::Suspended), resumed, "suspended");
        assert_eq!(count(Event::Completed) + closed, 1, "ended");
        assert_eq!(queued + suspended, closed);
        let registered = self.0.registered.try_lock().unwrap();
        assert!(registered.is_none(), "it is still registered");
    }
}

/// As the control thread and the reaper do.
fn close(job: &dyn Runnable) {
    job.close(CloseReason::ShutDown);
    if job.has_ended() {
        job.discard();
    }
}

impl Schedule for Level {
    fn reason_for_jobs(&self) -> Option<CloseReason> {
        self.0.closed.load(SeqCst).then_some(CloseReason::ShutDown)
    }

    /// The control thread has ended already.
    fn enqueue(&self, job: Arc<dyn Runnable>, _: bool, _: Option<&Key>) {
        self.0.queue.push(job);
        fence(SeqCst);
        if self.reason_for_jobs().is_some() {
            self.close_queued();
        }
    }

    fn enqueue_beside_parts(&self, job: Arc<dyn Runnable>, is_short: bool, key: Option<&Key>) {
        self.enqueue(job, is_short, key);
    }

    fn register(&self, job: Arc<dyn Runnable>) -> RegistryKey {
        *self.0.registered.try_lock().unwrap() = Some(job);
        RegistryKey::MIN
    }

    fn unregister(&self, _: RegistryKey) {
        *self.0.registered.try_lock().unwrap() = None;
    }

    fn enter_step(&self, _: bool, _: Option<Instant>) -> Option<Entered> {
        None
    }

    fn is_own_worker(&self) -> bool {
        false
    }

    fn counters(&self) -> &Counters {
        &self.0.counters
    }

    fn end_turn(&self, _: &mut Popped) {}

    fn is_short(&self, _: bool) -> bool {
        false
    }

    fn site(&self) -> Name {
        Name::OTHER
    }

    fn count_lost(&self) {}
}
