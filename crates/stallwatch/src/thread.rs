//! What the watch knows of one thread.
//!
//! What the thread says itself, by its record, comes first. For code that says nothing there is
//! a second look at the workers of the runtime (the threads that run probes): at their **system
//! calls**. A worker with nothing to do waits in few of them. If it waits in another one for
//! longer than twice the threshold, what it polls has made that call.
//!
//! A thread in `block_in_place` is no worker. Tokio counts how often each worker has parked: if
//! none of them has stood still since the call was first seen, the call is on no worker. A worker
//! that stands still in a poll that is watched would hide that, so while there is one, nothing is
//! said of such calls. A `current_thread` runtime stands still, too, while its thread has left
//! `block_on`: there nothing is said of them either.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Id;

use crate::detect::{Detector, Kernel, Stuck, What};
use crate::kernel::{Doing, ThreadFiles, Times};
use crate::pool::Pool;
use crate::record::{Activity, Kind, Record};
use crate::stall::Stall;

/// What is the same for all threads at one look.
pub(crate) struct View<'a> {
    pub(crate) now: Instant,
    pub(crate) threshold: Duration,
    pub(crate) runtime: Id,
    pub(crate) is_multi_thread: bool,
    pub(crate) pools: &'a [Pool],
    /// Of each worker: how often it has parked and gone on. Odd while it is parked.
    pub(crate) parks: Vec<u64>,
    /// How many threads of the runtime are inside of polls that are watched.
    pub(crate) in_polls: usize,
}

impl View<'_> {
    fn pool(&self, kind: Kind) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.kind == kind)
    }

    /// How many workers have neither parked nor gone on since these counts.
    pub(crate) fn have_stood_still(&self, since: &[u64]) -> usize {
        let workers = since.iter().zip(&self.parks);
        let still = workers.filter(|(before, now)| before == now && *now % 2 == 0);
        still.count()
    }
}

pub(crate) struct Thread {
    pub(crate) record: Arc<Record>,
    /// Opened when they are needed. A runtime may have hundreds of threads for calls that
    /// block, each with a span.
    files: Option<ThreadFiles>,
    detector: Detector,
    /// The last call in code that is not watched: how often the thread had got a core by then, and
    /// the parks of all workers when it was first seen. None, if it is on no worker.
    call: (u64, Vec<u64>),
}

impl Kernel for Option<ThreadFiles> {
    fn times(&mut self) -> Option<Times> {
        self.as_ref()?.times()
    }

    fn doing(&mut self) -> Option<Doing> {
        self.as_ref()?.doing()
    }
}

impl Thread {
    pub(crate) fn new(record: Arc<Record>) -> Self {
        Self {
            record,
            files: None,
            detector: Detector::default(),
            call: (0, Vec::new()),
        }
    }

    /// Whether one more look may tell that it is stuck.
    pub(crate) fn is_suspect(&self) -> bool {
        self.detector.is_suspect()
    }

    pub(crate) fn has_probed_since(&self, oldest: Option<u64>) -> bool {
        let probe = self.record.last_probe();
        probe.is_some_and(|probe| Some(probe) >= oldest)
    }

    /// Whether a thread of this runtime is inside of a poll that is watched, or a worker
    /// inside of a span.
    pub(crate) fn is_in_poll(&self, runtime: Id, is_worker: bool) -> bool {
        let is_poll = |kind| kind == Kind::POLL || kind == Kind::SPAN && is_worker;
        let activity = self.record.read();
        activity.is_some_and(|activity| is_poll(activity.kind))
            && self.record.runtime() == Some(runtime)
    }

    pub(crate) fn look(&mut self, view: &View, is_worker: bool) -> Option<Stall> {
        let is_of_runtime = self.record.runtime() == Some(view.runtime);
        let is_worker = is_worker && is_of_runtime;
        let activity = self.record.read().filter(|activity| {
            let is_of_pool = view.pool(activity.kind).is_some();
            is_of_pool || is_of_runtime && !activity.kind.is_of_pool()
        });
        let limit = activity.and_then(|activity| limit(view, &activity, is_worker));
        if self.files.is_none() && (is_worker || limit.is_some()) {
            self.files = self.record.id().and_then(|id| ThreadFiles::open(id).ok());
        }
        let what = match activity {
            Some(activity) => limit.map(|_| What::Poll(activity.count)),
            None if is_worker => self.call(view).map(What::Call),
            None => None,
        };
        // On a full machine the thread that takes over the worker of one in `block_in_place` begins
        // late, and the worker stands still meanwhile: so a call has twice the time.
        let limit = limit.unwrap_or(2 * view.threshold);
        let stuck = self.detector.look(view.now, what, limit, &mut self.files)?;
        Some(self.stall(view, activity, stuck))
    }

    /// The call that a worker waits in, in code that is not watched: how often it had got a core
    /// by then. While that number stays, so does the call.
    fn call(&mut self, view: &View) -> Option<u64> {
        let is_any_in_a_call =
            |since: &[u64]| view.in_polls == 0 && view.have_stood_still(since) > 0;
        // Mostly all are parked, and their files need not be read.
        if !view.is_multi_thread || !is_any_in_a_call(&view.parks) {
            self.call.1.clear();
            return None;
        }
        let doing = self.files.doing()?;
        if doing.may_be_parked() || !matches!(doing, Doing::Waits(Some(_))) {
            return None;
        }
        // After the state, so that the next look finds another number if this is another call.
        let slices = self.files.times()?.slices;
        if self.call.0 != slices {
            self.call = (slices, view.parks.clone());
        }
        if !is_any_in_a_call(&self.call.1) {
            // For good, while the call lasts: this thread is no worker.
            self.call.1.clear();
            return None;
        }
        Some(slices)
    }

    fn stall(&self, view: &View, activity: Option<Activity>, stuck: Stuck) -> Stall {
        let culprit = activity.map(|activity| activity.outer);
        let span = activity.filter(|activity| activity.inner != activity.outer);
        Stall {
            name: culprit,
            culprit: culprit.map(|name| name.to_string()),
            span: span.map(|activity| activity.inner.to_string()),
            thread: self.record.thread.clone(),
            thread_id: self.record.id(),
            pool: activity.and_then(|activity| view.pool(activity.kind).copied()),
            offload: view.pools.iter().find_map(|pool| pool.offload),
            cause: stuck.cause,
            since: stuck.since,
            lasted: stuck.own,
            stack: None,
        }
    }
}

/// `None` if it may take as long as it likes.
fn limit(view: &View, activity: &Activity, is_worker: bool) -> Option<Duration> {
    let threshold = view.threshold;
    match view.pool(activity.kind) {
        // A span that a thread of the blocking pool is in.
        None if activity.kind == Kind::SPAN && !is_worker => None,
        None => Some(threshold),
        Some(Pool {
            limit: Some(limit), ..
        }) => Some(threshold.max(*limit)),
        // The look that finds it late is its first, so the threshold counts from there.
        Some(_) => activity.is_late(view.now).then_some(threshold),
    }
}
