//! What the watch knows of one thread.
//!
//! What the thread says itself, by its record, is certain. For code that says nothing,
//! there are two more looks at the workers of the runtime (the threads that run probes):
//!
//! - **A call.** A worker with nothing to do waits in few calls. If it waits in another
//!   one for longer than the threshold, what it polls has made that call. (A thread in
//!   `block_in_place` is no worker. Tokio counts how often each worker has parked: if none
//!   of them has stood still, but for those in polls that are watched, the call is on no
//!   worker.)
//! - **A suspicion.** A probe waits, and since its start the worker has computed for
//!   longer than the threshold, and has entered and left no poll that is watched. It may
//!   be one long poll, or many short ones. On a runtime with several workers, any worker
//!   takes the probe: so this finds a runtime whose workers are *all* stuck.
//!
//! A worker in `futex` or `epoll_wait` may be parked. If it is the only one of its runtime,
//! a probe that waits says that it is not. (That does not hold for a `current_thread`
//! runtime, whose thread may have left `block_on`.)

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Id;

use crate::detect::{Detector, Kernel, Stuck, counts};
use crate::kernel::{Doing, ThreadFiles, Times};
use crate::name::Name;
use crate::pool::Pool;
use crate::record::{Activity, Kind, Record};
use crate::stall::{Cause, Stall};

/// What is the same for all threads at one look.
pub(crate) struct View<'a> {
    pub(crate) now: Instant,
    pub(crate) threshold: Duration,
    /// Whether the calls of threads in code that is not watched are looked for this time.
    pub(crate) is_call_due: bool,
    /// The number of the probe that waits.
    pub(crate) waiting: Option<u64>,
    pub(crate) is_only_worker: bool,
    /// Such a runtime looks stuck when nothing drives it, too.
    pub(crate) is_current_thread: bool,
    pub(crate) runtime: Id,
    pub(crate) pools: &'a [Pool],
    /// Of each worker: how often it has parked and gone on. Odd while it is parked.
    pub(crate) parks: Vec<u64>,
    /// How many threads of the runtime are inside of polls that are watched.
    pub(crate) in_polls: usize,
}

impl View<'_> {
    fn pool(&self, number: usize) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.number == number)
    }

    /// How many workers have neither parked nor gone on since these counts.
    pub(crate) fn have_stood_still(&self, before: &[u64]) -> usize {
        let workers = before.iter().zip(&self.parks);
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
    call: Option<Call>,
    /// How often it had got a core when it parked, or when its call was reported. While that
    /// number stays, it waits in the same call, and its other files need not be read.
    rests: Option<u64>,
    suspicion: Detector,
}

/// The thread waits in a call, in no code that is watched.
struct Call {
    since: Instant,
    looked: Instant,
    /// As in `detect.rs`.
    counted: Duration,
    slices: u64,
    /// Those of all workers, as the call was seen first.
    parks: Vec<u64>,
}

/// What a look has found.
pub(crate) struct Found {
    pub(crate) culprit: Option<Name>,
    pub(crate) thread: Option<u32>,
    pub(crate) stall: Stall,
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
            call: None,
            rests: None,
            suspicion: Detector::default(),
        }
    }

    /// Whether one more look may tell that it is stuck.
    pub(crate) fn is_suspect(&self) -> bool {
        self.detector.is_suspect() || self.suspicion.is_suspect() || self.call.is_some()
    }

    pub(crate) fn has_probed_since(&self, oldest: Option<u64>) -> bool {
        let probe = self.record.last_probe();
        probe.is_some_and(|probe| Some(probe) >= oldest)
    }

    /// Whether a thread of this runtime is inside of a poll that is watched, or a worker
    /// inside of a span.
    pub(crate) fn is_in_poll(&self, runtime: Id, is_worker: bool) -> bool {
        let is_poll = |kind| kind == Kind::Poll || kind == Kind::Span && is_worker;
        let activity = self.record.read();
        activity.is_some_and(|activity| is_poll(activity.kind))
            && self.record.runtime() == Some(runtime)
    }

    pub(crate) fn look(&mut self, view: &View, is_worker: bool) -> Option<Found> {
        let is_of_runtime = self.record.runtime() == Some(view.runtime);
        let activity = self.record.read().filter(|activity| {
            if activity.kind.is_work() {
                view.pool(activity.job.pool).is_some()
            } else {
                is_of_runtime
            }
        });
        let is_worker = is_worker && is_of_runtime;
        if let Some((activity, stuck)) = self.look_at_poll(view, activity, is_worker) {
            return Some(self.found(view, Some(&activity), stuck, true));
        }
        let is_unknown = is_worker && activity.is_none();
        let suspected = self.suspect(view, is_unknown);
        if !is_unknown {
            self.call = None;
        } else if view.is_call_due || self.call.is_some() {
            if let Some(stuck) = self.look_at_call(view) {
                return Some(self.found(view, None, stuck, !view.is_current_thread));
            }
        }
        suspected.map(|stuck| self.found(view, None, stuck, false))
    }

    fn look_at_poll(
        &mut self,
        view: &View,
        activity: Option<Activity>,
        is_worker: bool,
    ) -> Option<(Activity, Stuck)> {
        let threshold = activity.and_then(|activity| Self::threshold(view, &activity, is_worker));
        let poll = activity.filter(|_| threshold.is_some());
        if self.files.is_none() && (is_worker || poll.is_some()) {
            self.files = self.record.id().and_then(|id| ThreadFiles::open(id).ok());
        }
        let found = self.detector.look(
            view.now,
            poll.map(|poll| poll.count),
            threshold.unwrap_or(view.threshold),
            &mut self.files,
        );
        poll.zip(found)
    }

    /// `None` if it may take as long as it likes.
    fn threshold(view: &View, activity: &Activity, is_worker: bool) -> Option<Duration> {
        let threshold = view.threshold;
        match activity.kind {
            Kind::Poll => Some(threshold),
            // A span that a thread of the blocking pool is in.
            Kind::Span if !is_worker => None,
            Kind::Span => Some(threshold),
            Kind::Work(kind) => match view.pool(activity.job.pool)?.kind(kind)?.limit {
                Some(limit) => Some(limit.max(threshold)),
                // The look that finds it late is its first, so the threshold counts from there.
                None => activity.job.is_late(view.now).then_some(threshold),
            },
        }
    }

    fn look_at_call(&mut self, view: &View) -> Option<Stuck> {
        let files = self.files.as_ref()?;
        let slices = files.times()?.slices;
        if self.rests == Some(slices) {
            return None;
        }
        let doing = files.doing()?;
        let Doing::Waits(Some(name)) = &doing else {
            self.call = None;
            return None;
        };
        if doing.may_be_parked() {
            self.call = None;
            self.rests = Some(slices);
            return None;
        }
        // Read again after the state: a thread that got a core meanwhile may have made
        // another call.
        let slices = files.times()?.slices;
        let Some(call) = self.call.as_mut().filter(|call| call.slices == slices) else {
            self.call = Some(Call {
                since: view.now,
                looked: view.now,
                counted: Duration::ZERO,
                slices,
                parks: view.parks.clone(),
            });
            return None;
        };
        // If each worker has parked, or gone on, or is in a poll that is watched, this thread
        // is none of them: it has called `block_in_place`.
        if view.have_stood_still(&call.parks) <= view.in_polls {
            self.call = None;
            self.rests = Some(slices);
            return None;
        }
        call.counted += counts(view.now - call.looked);
        call.looked = view.now;
        if call.counted < view.threshold {
            return None;
        }
        self.rests = Some(slices);
        let call = self.call.take()?;
        Some(Stuck {
            since: call.since,
            own: call.counted,
            cause: Cause::Blocks(Some(*name)),
        })
    }

    fn suspect(&mut self, view: &View, is_unknown: bool) -> Option<Stuck> {
        // Without the kernel's word a thread that is parked would be suspected.
        self.files.as_ref()?;
        let probe = view.waiting.filter(|_| is_unknown);
        // Both only grow, so the sum changes with either.
        let poll = probe.map(|probe| probe + self.record.count());
        let found = self
            .suspicion
            .look(view.now, poll, view.threshold, &mut self.files)?;
        let is_stuck = match &found.cause {
            Cause::Computes => true,
            Cause::Blocks(call) => {
                view.is_only_worker && Doing::Waits(*call).may_be_parked()
            }
            Cause::Unknown => false,
        };
        is_stuck.then_some(found)
    }

    fn found(
        &self,
        view: &View,
        activity: Option<&Activity>,
        stuck: Stuck,
        is_certain: bool,
    ) -> Found {
        let work = activity.and_then(|activity| match activity.kind {
            Kind::Work(kind) => view.pool(activity.job.pool)?.kind(kind),
            _ => None,
        });
        let span = activity.filter(|activity| activity.inner != activity.outer);
        let stall = Stall {
            culprit: activity.map(|activity| activity.outer.to_string()),
            span: span.map(|activity| activity.inner.to_string()),
            thread: self.record.thread.clone(),
            is_of_pool: work.is_some(),
            if_it_computes: match work {
                Some(work) => Some(work.remedy),
                None => view.pools.iter().find_map(|pool| pool.offload),
            },
            can_await: work.is_none_or(|work| work.can_await),
            cause: stuck.cause,
            since: stuck.since,
            lasted: stuck.own,
            stack: None,
            is_certain,
        };
        Found {
            culprit: activity.map(|activity| activity.outer),
            thread: self.record.id(),
            stall,
        }
    }
}
