//! The life of a job: the code of `crates/core/src/task`, on a lane of the model's own (`job_lane.rs`).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use loom::future::block_on;
use loom::sync::atomic::Ordering::{Acquire, Release, SeqCst};
use loom::thread;

use crate::error::{JoinError, JoinErrorKind};
use crate::job_lane::Level;
use crate::task::worker::set_in_cpu_context;
use crate::task::{Cancel, Extras, FutureWork, Job, Runnable, Schedule, Task, closure};
use crate::{large_model, model};

const OUTPUT: u8 = 7;
/// What a job returns without its part.
const NO_PART: u8 = 0;

/// What a job captures. It may be dropped once, and does not run after that.
struct Captures {
    is_dropped: Arc<Mutex<bool>>,
}

impl Drop for Captures {
    fn drop(&mut self) {
        let mut is_dropped = self.is_dropped.try_lock().unwrap();
        assert!(!std::mem::replace(&mut *is_dropped, true));
    }
}

/// Returns its output in the last of so many steps.
struct Steppy {
    level: Level,
    left: u8,
    has_part: bool,
    captures: Captures,
}

impl Future for Steppy {
    type Output = u8;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u8> {
        assert!(!*self.captures.is_dropped.try_lock().unwrap());
        self.level.0.is_begun.store(true, Release);
        if self.has_part {
            set_in_cpu_context();
        }
        self.left -= 1;
        if self.left > 0 {
            return Poll::Pending;
        }
        let is_lost = self.has_part && self.level.0.part_is_dropped.load(SeqCst);
        Poll::Ready(if is_lost { NO_PART } else { OUTPUT })
    }
}

/// A job that is not submitted yet.
struct Subject {
    level: Level,
    job: Arc<Job<FutureWork<u8>, Level>>,
    captures_are_dropped: Arc<Mutex<bool>>,
}

impl Subject {
    fn new(steps: u8, has_part: bool, deadline: Option<Instant>) -> Self {
        let level = Level::new();
        let captures_are_dropped = Arc::<Mutex<bool>>::default();
        let future = Steppy {
            level: level.clone(),
            left: steps,
            has_part,
            captures: Captures {
                is_dropped: captures_are_dropped.clone(),
            },
        };
        let mut extras = Extras::default();
        extras.complete(deadline);
        Self {
            job: Job::new(level.clone(), FutureWork::new(future), extras),
            level,
            captures_are_dropped,
        }
    }

    fn submit(&self) -> Task<u8> {
        self.job.submit(0, false);
        Task::new(self.job.clone())
    }

    /// Of a future of two steps.
    fn submitted() -> (Self, Task<u8>) {
        let subject = Self::new(2, false, None);
        let task = subject.submit();
        (subject, task)
    }

    /// The waker of its steps, which has no effect before the first one.
    fn waker(&self) -> Waker {
        futures::task::waker(self.job.clone())
    }

    fn on_thread(&self, call: impl FnOnce(&Level) + 'static) -> thread::JoinHandle<()> {
        let level = self.level.clone();
        thread::spawn(move || call(&level))
    }

    fn wake_on_thread(&self) -> thread::JoinHandle<()> {
        let waker = self.waker();
        self.on_thread(move |_| waker.wake())
    }

    fn cancel_on_thread(&self) -> thread::JoinHandle<()> {
        let job = self.job.clone();
        self.on_thread(move |_| _ = job.cancel())
    }

    #[track_caller]
    fn check_end(&self) {
        self.level.check_end();
        assert!(*self.captures_are_dropped.try_lock().unwrap());
    }

    /// Runs a step against these threads, and then what is left. The job ends with its output, or
    /// with an error that fits.
    #[track_caller]
    fn ends_against<const N: usize>(
        &self,
        task: Task<u8>,
        threads: [thread::JoinHandle<()>; N],
        fits: fn(&JoinError) -> bool,
    ) {
        self.level.run_next();
        threads.into_iter().for_each(|it| it.join().unwrap());
        while self.level.run_next() {}
        match block_on(task) {
            Ok(output) => assert_eq!(output, OUTPUT),
            Err(error) => assert!(fits(&error)),
        }
        self.check_end();
    }
}

fn is_shut_down(error: &JoinError) -> bool {
    error.kind() == JoinErrorKind::Shutdown
}

/// Wake and cancel during a step: the awaiter is notified, the work is dropped once and
/// never runs after that.
#[test]
fn wake_and_cancel_against_a_step() {
    model(|| {
        let (subject, task) = Subject::submitted();
        let threads = [subject.wake_on_thread(), subject.cancel_on_thread()];
        // A wake before the first step wakes nothing, so the job may still be
        // suspended. But it was cancelled, so it has ended.
        subject.ends_against(task, threads, JoinError::is_cancelled);
    });
}

/// Whoever awaits a cancelled job that has begun may rely on that its captures are gone.
#[test]
fn a_cancelled_job_has_dropped_its_captures_when_its_task_ends() {
    for begun in [1, 2] {
        model(move || {
            let subject = Subject::new(begun + 1, false, None);
            let task = subject.submit();
            subject.level.run_next();
            for _ in 1..begun {
                subject.waker().wake();
                subject.level.run_next();
            }
            let threads = [subject.wake_on_thread(), subject.cancel_on_thread()];
            let is_dropped = subject.captures_are_dropped.clone();
            let awaiter = thread::spawn(move || {
                let ended = block_on(task);
                assert!(*is_dropped.try_lock().unwrap());
                ended
            });
            threads.into_iter().for_each(|it| it.join().unwrap());
            while subject.level.run_next() {}
            match awaiter.join().unwrap() {
                Ok(output) => assert_eq!(output, OUTPUT),
                Err(error) => assert!(error.is_cancelled()),
            }
            subject.check_end();
        });
    }
}

/// The second one takes nothing back.
#[test]
fn a_suspended_job_is_cancelled_twice() {
    model(|| {
        let (subject, task) = Subject::submitted();
        subject.level.run_next();
        let threads = [subject.cancel_on_thread(), subject.cancel_on_thread()];
        threads.into_iter().for_each(|it| it.join().unwrap());
        while subject.level.run_next() {}
        assert!(block_on(task).unwrap_err().is_cancelled());
        subject.check_end();
    });
}

/// A cancel of a job whose deadline has passed: it ends once, for one reason.
#[test]
fn a_cancel_against_a_deadline() {
    model(|| {
        let subject = Subject::new(2, false, Some(Instant::now()));
        let task = subject.submit();
        let canceller = subject.cancel_on_thread();
        subject.level.run_next();
        canceller.join().unwrap();
        while subject.level.run_next() {}
        let error = block_on(task).unwrap_err();
        assert!(error.is_cancelled() || error.kind() == JoinErrorKind::Expired);
        subject.check_end();
    });
}

/// A submission while the lane closes, with no worker to run the job: its awaiter is
/// notified once.
#[test]
fn a_submission_against_a_shutdown() {
    model(|| {
        let subject = Subject::new(2, false, None);
        let control = subject.on_thread(Level::shut_down);
        let task = subject.submit();
        control.join().unwrap();
        assert!(subject.level.0.queue.pop().is_none(), "it is forgotten");
        assert_eq!(block_on(task).unwrap_err().kind(), JoinErrorKind::Shutdown);
        subject.check_end();
    });
}

/// A wake while the lane closes: no job stays suspended forever, and no counter is off.
#[test]
fn wake_and_shutdown_against_a_step() {
    model(|| {
        let (subject, task) = Subject::submitted();
        let threads = [
            subject.wake_on_thread(),
            subject.on_thread(Level::shut_down),
        ];
        subject.ends_against(task, threads, is_shut_down);
    });
}

/// A job in its last step, while the lane closes and drops a part of it: it ends as shut
/// down, or with the output that it has with the part.
#[test]
fn a_shutdown_against_a_job_with_a_part() {
    model(|| {
        let subject = Subject::new(1, true, None);
        let task = subject.submit();
        let threads = [
            subject.on_thread(Level::shut_down),
            subject.wake_on_thread(),
        ];
        subject.ends_against(task, threads, is_shut_down);
    });
}

/// A cancel in addition: one of the two close reasons counts.
#[test]
fn cancel_and_shutdown_against_a_step_that_is_woken() {
    large_model(|| {
        let (subject, task) = Subject::submitted();
        let threads = [
            subject.cancel_on_thread(),
            subject.on_thread(Level::shut_down),
            subject.wake_on_thread(),
        ];
        let fits = |error: &JoinError| is_shut_down(error) || error.is_cancelled();
        subject.ends_against(task, threads, fits);
    });
}

/// Code that outlives the job asks the job's context: it does not see a cancel that
/// comes after the end.
#[test]
fn a_cancel_against_the_end() {
    model(|| {
        let subject = Subject::new(1, false, None);
        let task = subject.submit();
        let job = subject.job.clone();
        let canceller = thread::spawn(move || {
            let came_after = job.has_ended();
            job.cancel();
            came_after
        });
        subject.level.run_next();
        let is_wanted = subject.job.end_request().is_some();
        let came_after = canceller.join().unwrap();
        assert!(!(came_after && subject.job.end_request().is_some()));
        // The cancel came before the end, or has no effect: a later look finds the
        // same.
        assert_eq!(subject.job.end_request().is_some(), is_wanted);
        subject.job.clone().cancel();
        assert_eq!(subject.job.end_request().is_some(), is_wanted);
        match block_on(task) {
            Ok(output) => assert_eq!(output, OUTPUT),
            // It was still in the queue.
            Err(error) => assert!(error.is_cancelled() && is_wanted),
        }
        subject.check_end();
    });
}

/// A wake during a step, or of a suspended job, is not lost.
#[test]
fn a_wake_is_not_lost() {
    model(|| {
        let (subject, task) = Subject::submitted();
        let waker = subject.waker();
        let runner = subject.on_thread(|level| _ = level.run_next());
        let is_begun = subject.level.0.is_begun.load(Acquire);
        waker.wake_by_ref();
        runner.join().unwrap();
        // That wake may have come before the step, and had no effect.
        if !is_begun {
            waker.wake_by_ref();
        }
        while subject.level.run_next() {}
        assert_eq!(block_on(task).unwrap(), OUTPUT);
        subject.check_end();
    });
}

/// The awaiter gets the output, whether it sleeps or not.
#[test]
fn the_end_against_an_await() {
    model(|| {
        let subject = Subject::new(1, false, None);
        let task = subject.submit();
        let runner = subject.on_thread(|level| _ = level.run_next());
        assert_eq!(block_on(task).unwrap(), OUTPUT);
        runner.join().unwrap();
        subject.check_end();
    });
}

/// A job ends while its task is detached or dropped: one of the two threads drops the output, even if
/// a handle keeps the job.
#[test]
fn the_end_against_a_task_that_is_let_go() {
    for is_detached in [true, false] {
        model(move || {
            let level = Level::new();
            let output = Arc::new(());
            let kept = output.clone();
            let job = Job::new(level.clone(), closure(move || kept), Extras::default());
            let _kept = job.clone();
            job.submit(0, false);
            let runner = thread::spawn({
                let level = level.clone();
                move || _ = level.run_next()
            });
            let task = Task::new(job);
            match is_detached {
                true => task.detach(),
                false => drop(task),
            }
            runner.join().unwrap();
            assert_eq!(Arc::strong_count(&output), 1, "the output is still there");
            level.check_end();
        });
    }
}
