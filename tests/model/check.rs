//! The comparison of a lane with its model, when it is at rest; and the waits for
//! that.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::model::{Counts, End, Waiter};
use crate::run::Run;

pub(crate) type Checked<T = ()> = Result<T, TestCaseError>;

/// What is waited for comes in microseconds, or never. Once a case has failed, a
/// short patience finds the smallest that fails in the same way.
pub(crate) fn patience() -> Duration {
    match HAS_FAILED.load(SeqCst) {
        false => Duration::from_secs(20),
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
        thread::yield_now();
    }
}

impl Run {
    /// Until the thread has nothing more to do, or is kept by a job.
    pub(crate) fn settle(&mut self) -> Checked {
        loop {
            let next = self.model.next();
            if next.is_empty() {
                return self.compare();
            }
            self.lane_is_at_it = true;
            let step = self.steps.recv_timeout(patience());
            let told = format!("one of {next:?} should start, not {step:?}");
            prop_assert!(step.is_ok_and(|job| next.contains(&job)), "{}", told);
            self.model.begin(step.unwrap());
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
        // A future is in the books as suspended shortly before it is. (What was
        // closed is dropped at any time.)
        let busy = format!("busy_threads: {},", expected.running);
        wait_for(&busy, || {
            let debug = format!("{:?}", self.handle);
            debug.contains(&busy).then_some(())
        })?;
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
                // Whoever awaits may rely on it.
                Some(End::Output | End::Panicked) => prop_assert_eq!(drops, 1, "{}", what("drops")),
                Some(_) if self.model.jobs[job].was_refused => prop_assert_eq!(drops, 1),
                // Soon, by the lane.
                Some(_) => prop_assert!(drops <= 1),
            }
        }
        for (number, _, flag) in &self.admits {
            let is_told = self.model.waiters[*number] != Waiter::Waits;
            self.check("woke who waits for a place", is_told, |_| flag.was_woken())?;
        }
        if let Some(job) = self.model.running {
            prop_assert_eq!(self.checkpoint(job)?, self.model.is_to_end(job));
        }
        // What the waits above have let pass would show now.
        prop_assert_eq!(self.counts(), expected);
        let step = self.steps.try_recv();
        prop_assert!(step.is_err(), "a step that nobody expects: {step:?}");
        Ok(())
    }

    pub(crate) fn checkpoint(&self, job: usize) -> Checked<bool> {
        let asked = self.jobs[job].call(|| twolane::checkpoint().is_err());
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
