//! What the watch knows of one thread.
//!
//! What the thread says itself, by its record, comes first. For code that says nothing there is
//! a second look at the workers of the runtime (the threads that run probes): at their **system
//! calls**. A worker with nothing to do waits in few of them. If it waits in another one for
//! longer than twice the threshold, what it polls has made that call.
//!
//! A thread in `block_in_place` is no worker. Tokio counts how often each worker has parked, and for how
//! long it was busy: if each of them has gone on since the call was first seen (`unnamed.rs`), the call is
//! on no worker. A worker that stands still in a poll that is watched would hide that, so while there is
//! one, nothing is said of such calls. A `current_thread` runtime stands still, too, while its thread has
//! left `block_on`: there nothing is said of them either.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Id;

use crate::detect::{Detector, Kernel, Stuck, What};
use crate::ended::{self, History};
use crate::kernel::{Doing, ThreadFiles, Times};
use crate::pool::Pool;
use crate::record::{Activity, Ended, Kind, Record};
use crate::stall::{Cause, Stall};
use crate::unnamed::{LONG, computed, lacks_core};

/// How long work may wait in one call, if it may compute as long as it likes.
const MAY_WAIT: Duration = Duration::from_secs(1);

/// What is the same for all threads at one look.
pub(crate) struct View<'a> {
    pub(crate) now: Instant,
    pub(crate) threshold: Duration,
    pub(crate) runtime: Id,
    pub(crate) is_multi_thread: bool,
    pub(crate) pools: &'a [Pool],
    /// Since then no look was late.
    pub(crate) in_time: Instant,
    /// What the host has kept of a core, as it was lately.
    pub(crate) stolen: Duration,
    /// Of each worker: how often it has parked and gone on. Odd while it is parked.
    pub(crate) parks: Vec<u64>,
    /// Since when a worker has not turned to the driver, if that may be for code that is not watched: not
    /// while a thread of the runtime is inside of a poll that is.
    pub(crate) stand_since: Option<Instant>,
    /// From when on what a thread has computed is blamed for that; `None` if it does no harm.
    pub(crate) harm_since: Option<Instant>,
}

impl View<'_> {
    fn pool(&self, kind: Kind) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.kind == kind)
    }
}

pub(crate) struct Thread {
    pub(crate) record: Arc<Record>,
    /// Opened when they are needed. A runtime may have hundreds of threads for calls that
    /// block, each with a span.
    files: Option<ThreadFiles>,
    detector: Detector,
    history: History,
    /// The count of the record at the last look, and of the last poll that is known to be over.
    seen: u64,
    ended: u64,
    /// Whether this look has found that it runs, or waits for a core; and the last look at the worker that
    /// had not.
    runs: bool,
    waited: Option<Instant>,
    /// The last call in code that is not watched: how often the thread had got a core by then, and
    /// the look that saw it first. None, if it is on no worker.
    call: (u64, Option<Instant>),
    /// The last look that found it to compute in such code.
    told: Option<Instant>,
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
            history: History::default(),
            seen: 0,
            ended: 0,
            runs: false,
            waited: None,
            call: (0, None),
            told: None,
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

    /// Whether it has entered or left anything of this runtime or these pools since this was last
    /// asked, or is inside of it. (One may be inside of a span for ever.)
    pub(crate) fn has_moved(&mut self, runtime: Id, pools: &[Pool]) -> bool {
        let (count, kind) = (self.record.count(), self.record.kind());
        let before = std::mem::replace(&mut self.seen, count);
        let is_inside = count % 2 == 1 && kind != Kind::SPAN;
        let is_of_runtime = !kind.is_of_pool() && self.record.runtime() == Some(runtime);
        (before != count || is_inside)
            && (is_of_runtime || pools.iter().any(|pool| pool.kind == kind))
    }

    /// Its number, if it waits for the events of sockets.
    pub(crate) fn in_epoll(&mut self) -> Option<u32> {
        let is_in_epoll = self.files.doing()?.is_in_epoll();
        self.record.id().filter(|_| is_in_epoll)
    }

    /// The polls of the runtime that took long and are over. To be asked before [`look`](Self::look).
    pub(crate) fn ended(&mut self, view: &View, is_worker: bool) -> Vec<Ended> {
        let mut ended = self.record.ended_after(self.ended);
        self.ended = ended.last().map_or(self.ended, |last| last.activity.count);
        ended.retain(|ended| {
            ended.runtime == Some(view.runtime)
                && ended.took >= view.threshold
                && limit(view, &ended.activity, is_worker).is_some()
        });
        if !ended.is_empty() {
            self.open_files();
        }
        ended
    }

    /// Whether it was stuck, unless a look has found that before. `stolen`: by now.
    pub(crate) fn was_stuck(&self, view: &View, ended: &Ended, stolen: Duration) -> Option<Stall> {
        let what = What::Poll(ended.activity.count);
        if self.detector.has_found(what) {
            return None;
        }
        let doing = self.detector.doing(what);
        let (own, cause) = ended::own_time(ended, &self.history, doing, view.in_time, stolen)?;
        // Inside of a span, the thread may have polled others, if a guard is held over an `.await`.
        let is_span = ended.activity.kind == Kind::SPAN;
        if own < view.threshold || is_span && cause != Cause::Computes {
            return None;
        }
        let stuck = Stuck {
            since: ended.begun,
            own,
            cause,
        };
        let stall = self.stall(view, Some(ended.activity), stuck);
        Some(Stall {
            is_over: true,
            ..stall
        })
    }

    fn open_files(&mut self) {
        if self.files.is_none() {
            self.files = self.record.id().and_then(|id| ThreadFiles::open(id).ok());
        }
    }

    /// What the kernel tells of it now, for the polls that begin after this. While the runtime is
    /// idle that changes little.
    pub(crate) fn note_times(&mut self, view: &View, is_idle: bool) {
        let (now, stolen) = (view.now, view.stolen);
        if is_idle && !self.history.is_old(now) {
            return;
        }
        if let Some(times) = self.files.times() {
            let named = self.record.named();
            let times = Times {
                named,
                stolen,
                ..times
            };
            self.history.add(now, times);
        }
    }

    /// Looks whether it runs, or waits for a core, if it is a worker and one of them stands.
    pub(crate) fn note_state(&mut self, view: &View, is_worker: bool) {
        self.runs = false;
        if is_worker && self.record.runtime() == Some(view.runtime) {
            self.open_files();
            self.runs = view.stand_since.is_some() && self.files.doing() == Some(Doing::Runs);
            if !self.runs {
                self.waited = Some(view.now);
            }
        }
    }

    pub(crate) fn runs(&self) -> bool {
        self.runs
    }

    /// Whether it is a worker that no look since then has found to wait, and that lacks a core.
    pub(crate) fn lacks_core(&self, since: Instant, threshold: Duration) -> bool {
        let has_waited = self.waited.is_some_and(|waited| waited >= since);
        self.runs && !has_waited && lacks_core(since, threshold, &self.history)
    }

    pub(crate) fn look(&mut self, view: &View, is_worker: bool) -> Option<Stall> {
        let is_of_runtime = self.record.runtime() == Some(view.runtime);
        let is_worker = is_worker && is_of_runtime;
        let activity = self.record.read().filter(|activity| {
            let is_of_pool = view.pool(activity.kind).is_some();
            // Its thread may be about to leave one that is known to be over.
            activity.count > self.ended
                && (is_of_pool || is_of_runtime && !activity.kind.is_of_pool())
        });
        let limit = activity.and_then(|activity| limit(view, &activity, is_worker));
        if limit.is_some() {
            self.open_files();
        }
        let (what, limit) = match (activity, limit) {
            // A guard of the span is held over an `.await`.
            (Some(Activity { kind, .. }), _) if kind == Kind::SPAN && self.is_parked(view) => {
                (None, view.threshold)
            }
            (Some(activity), Some(limit)) => (Some(What::Poll(activity.count)), limit),
            (Some(activity), None) => (self.wait(view, activity.kind).map(What::Call), MAY_WAIT),
            // On a full machine the thread that takes over the worker of one in `block_in_place`
            // begins late, and the worker stands still meanwhile: so a call has twice the time.
            (None, _) if is_worker => (self.call(view).map(What::Call), 2 * view.threshold),
            (None, _) => (None, view.threshold),
        };
        let is_told = self.told.is_some_and(|at| view.now - at < LONG);
        let harm = view
            .harm_since
            .filter(|_| is_worker && activity.is_none() && !is_told);
        let unnamed = harm.and_then(|stand| computed(stand, view.threshold, &self.history));
        self.told = unnamed.as_ref().map(|_| view.now).or(self.told);
        let named = self.detector.look(view.now, what, limit, &mut self.files);
        Some(self.stall(view, activity, named.or(unnamed)?))
    }

    /// The call that work waits in which may compute as long as it likes, if that counts now.
    fn wait(&mut self, view: &View, kind: Kind) -> Option<u64> {
        let (_, count) = view.pool(kind)?.waits.as_ref()?;
        // It is not the watch's: a panic counts as false.
        if !catch_unwind(AssertUnwindSafe(|| count())).unwrap_or(false) {
            return None;
        }
        self.open_files();
        let waits = matches!(self.files.doing()?, Doing::Waits(Some(_)));
        let slices = self.files.times()?.slices;
        waits.then_some(slices)
    }

    fn is_parked(&mut self, view: &View) -> bool {
        let is_any = view.parks.iter().any(|parks| parks % 2 == 1);
        // A thread of a multi-thread runtime may wait for a lock.
        let may_be = |doing: Doing| match view.is_multi_thread {
            true => doing.is_in_epoll(),
            false => doing.may_be_parked(),
        };
        is_any && self.files.doing().is_some_and(may_be)
    }

    /// The call that a worker waits in, in code that is not watched: how often it had got a core
    /// by then. While that number stays, so does the call.
    fn call(&mut self, view: &View) -> Option<u64> {
        // If not, it is None for good, while the call lasts: this thread is no worker.
        let stands_since = |seen: &Instant| view.stand_since.is_some_and(|stand| stand <= *seen);
        self.call.1 = self.call.1.filter(stands_since);
        // Mostly all are parked, and their files need not be read.
        view.stand_since?;
        let doing = self.files.doing()?;
        if doing.may_be_parked() || !matches!(doing, Doing::Waits(Some(_))) {
            return None;
        }
        // After the state, so that the next look finds another number if this is another call.
        let slices = self.files.times()?.slices;
        if self.call.0 != slices {
            self.call = (slices, Some(view.now));
        }
        self.call.1.map(|_| slices)
    }

    fn stall(&self, view: &View, activity: Option<Activity>, stuck: Stuck) -> Stall {
        let culprit = activity.map(|activity| activity.outer);
        let span = activity.filter(|activity| activity.inner != activity.outer);
        Stall {
            name: culprit,
            culprit: culprit.map(|name| name.to_string()),
            span: span.map(|activity| activity.inner.to_string()),
            thread: self.record.thread.clone(),
            pool: activity.and_then(|activity| view.pool(activity.kind).cloned()),
            offload: view.pools.iter().find_map(|pool| pool.offload),
            cause: stuck.cause,
            since: stuck.since,
            lasted: stuck.own,
            is_over: false,
        }
    }
}

/// `None` if it may compute as long as it likes.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it lacks a core since the second of three looks, each 50 ms, at which it computes nothing: at which
    /// of them it has waited last.
    fn lacks_core(runs: bool, waited: Option<u32>) -> bool {
        let begin = Instant::now();
        let at = |look: u32| begin + look * Duration::from_millis(50);
        let mut thread = Thread::new(Arc::default());
        (1..=3).for_each(|look| thread.history.add(at(look), Times::default()));
        (thread.runs, thread.waited) = (runs, waited.map(at));
        thread.lacks_core(at(2), Duration::from_millis(25))
    }

    #[test]
    fn who_waits_for_anything_else_lacks_no_core() {
        assert!(lacks_core(true, None) && lacks_core(true, Some(1)));
        assert!(!lacks_core(true, Some(2)) && !lacks_core(true, Some(3)));
        assert!(!lacks_core(false, None));
    }
}
