//! The comparison of a lane with its model, when it is at rest; and the waits for
//! that.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::calls::Kind;
use crate::model::Counts;
use crate::run::Run;
use twolane_core::JoinErrorKind;

pub(crate) type Checked<T = ()> = Result<T, TestCaseError>;

/// Between two looks. A thread that spins would keep the core from the niced one that it waits for.
const LOOK: Duration = Duration::from_micros(50);

/// What is waited for comes in microseconds, or never: a busy machine gets two minutes. Once a case has failed, a
/// short patience finds the smallest that fails in the same way.
pub(crate) fn patience() -> Duration {
    match HAS_FAILED.load(SeqCst) {
        false => Duration::from_secs(120),
        true => Duration::from_secs(1),
    }
}

pub(crate) static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Looks until it is there.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Checked<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if start.elapsed() > patience() {
            return Err(TestCaseError::fail(format!("it never comes: {what}")));
        }
        thread::park_timeout(LOOK);
    }
}

impl Run {
    /// Until the thread has nothing more to do, or is kept by a job.
    pub(crate) fn settle(&mut self) -> Checked {
        loop {
            let Some(next) = self.model.next() else {
                if self.model.running.is_none() && self.model.end_all_without_step() {
                    self.lane_is_at_it = true;
                }
                return self.compare();
            };
            self.lane_is_at_it = true;
            let step = self.steps.recv_timeout(patience());
            prop_assert_eq!(step, Ok(next), "the job that should start");
            self.model.begin(next);
            self.model.lags_behind = false;
        }
    }

    /// At once where the lane had nothing to do with the call: then there is
    /// nothing to be waited for.
    fn check<T: PartialEq + Debug>(
        &self,
        what: &str,
        expected: T,
        look: impl Fn(&Self) -> T,
    ) -> Checked {
        let mut found = look(self);
        if self.lane_is_at_it && found != expected {
            // The comparison below tells what came instead.
            let _ = wait_for(what, || {
                found = look(self);
                (found == expected).then_some(())
            });
        }
        prop_assert_eq!(found, expected, "{}", what);
        Ok(())
    }

    fn compare(&mut self) -> Checked {
        let expected = self.model.counts();
        self.check("the metrics", expected, Self::counts)?;
        let running = format!("running: {},", expected.running);
        let debug = format!("{:?}", self.handle);
        prop_assert!(debug.contains(&running), "{} in {}", running, debug);
        for (job, real) in self.jobs.iter().enumerate() {
            let end = self.model.end_of(job);
            let what =
                |what: &str| format!("of job {job}, {:?}: {what}", self.model.jobs[job].phase);
            let ended = end.is_some();
            if let Some(abort) = &real.abort {
                self.check(&what("has ended"), ended, |_| abort.is_finished())?;
            }
            if let Some(task) = &real.task {
                prop_assert_eq!(task.is_finished(), ended);
            }
            if let Some(waker) = &real.waker {
                self.check(&what("was woken"), ended, |_| waker.was_woken())?;
            }
            let drops = real.drops.load(SeqCst);
            match end {
                None => prop_assert_eq!(drops, 0, "{}", what("drops")),
                // An awaiter may rely on it.
                Some(_) if self.model.jobs[job].ended_by_itself => {
                    prop_assert_eq!(drops, 1, "{}", what("drops"));
                }
                Some(_) if self.model.jobs[job].was_refused => prop_assert_eq!(drops, 1),
                // At any time, by the lane or its reaper.
                Some(_) if self.model.is_closed => prop_assert!(drops <= 1),
                Some(_) => {
                    let expected = usize::from(self.model.jobs[job].is_discarded);
                    self.check(&what("drops"), expected, |_| real.drops.load(SeqCst))?;
                }
            }
        }
        for waiter in &self.waiters {
            let is_told = self.model.permits.is_answered(waiter.number);
            self.check("is told of its permit", is_told, |_| {
                waiter.flag.was_woken()
            })?;
        }
        let asks = |job: &usize| self.jobs[*job].kind == Kind::ClosureWith;
        if let Some(job) = self.model.running.filter(asks) {
            let is_to_end = self.model.reason_to_end(job).is_some();
            prop_assert_eq!(self.checkpoint(job)?, is_to_end);
        }
        self.find_free_permits()?;
        // What the waits above have let pass would show now.
        prop_assert_eq!(self.counts(), self.model.counts());
        let step = self.steps.try_recv();
        prop_assert!(step.is_err(), "a step out of its turn: {step:?}");
        Ok(())
    }

    /// After the lane has dropped what held one: then all are there soon.
    fn find_free_permits(&mut self) -> Checked {
        let lags_behind = std::mem::take(&mut self.model.lags_behind);
        let Some(free) = self.model.permits.free().filter(|_| lags_behind) else {
            return Ok(());
        };
        let start = Instant::now();
        loop {
            let found: Result<Vec<_>, _> = (0..free).map(|_| self.handle.try_reserve()).collect();
            match found {
                Ok(_) => return Ok(()),
                Err(error) => prop_assert!(error.kind() == JoinErrorKind::QueueFull, "{}", error),
            }
            self.model.count_refusal();
            prop_assert!(start.elapsed() < patience(), "a permit is lost");
            thread::park_timeout(LOOK);
        }
    }

    fn checkpoint(&self, job: usize) -> Checked<bool> {
        let asked = self.jobs[job].call(|context| {
            let job = context.expect("it has one");
            job.checkpoint().is_err()
        });
        let answer = asked.recv_timeout(patience());
        answer.map_err(|_| TestCaseError::fail(format!("job {job} does not run")))
    }

    pub(crate) fn counts(&self) -> Counts {
        let metrics = self.handle.metrics();
        Counts {
            submitted: metrics.submitted,
            rejected: metrics.rejected,
            queued: metrics.queued,
            running: metrics.running,
            suspended: metrics.suspended,
            completed: metrics.completed,
            panicked: metrics.panicked,
            cancelled: metrics.cancelled,
            expired: metrics.expired,
            dropped: metrics.dropped,
        }
    }
}
