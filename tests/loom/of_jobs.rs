//! The life of a job, and its completion.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use loom::future::block_on;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicBool, fence};
use loom::thread;

use crate::error::{self, CloseReason};
use crate::model;
use crate::sync::Queue;
use crate::task::completion::{Completion, Slot, wake};
use crate::task::state::{Close, JoinInterest, State, ToIdle, ToRunning};

/// Counted outside of the model, so that it orders nothing there.
#[derive(Default)]
struct Count(AtomicI32);

impl Count {
    fn add(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    fn get(&self) -> i32 {
        self.0.load(SeqCst)
    }
}

/// As `lane/counters.rs`.
#[derive(Default)]
struct Counters {
    submitted: Count,
    begun: Count,
    suspended: Count,
    woken: Count,
    completed: Count,
    /// Cancelled, expired, dropped.
    closed: Count,
    closed_queued: Count,
    closed_suspended: Count,
}

impl Counters {
    fn queued(&self) -> i32 {
        self.submitted.get() + self.woken.get() - self.begun.get() - self.closed_queued.get()
    }

    fn running(&self) -> i32 {
        self.begun.get() - self.suspended.get() - self.completed.get()
    }

    fn suspended(&self) -> i32 {
        self.suspended.get() - self.woken.get() - self.closed_suspended.get()
    }

    fn ended(&self) -> i32 {
        self.completed.get() + self.closed.get()
    }
}

/// The steps of the future in these models; the last one returns the output.
const STEPS: i32 = 2;

/// The lane and a future on it, as in `task/mod.rs`, with counters in place of the
/// work.
struct Model {
    completion: Completion<u8>,
    queue: Queue<()>,
    closed: AtomicBool,
    counters: Counters,
    steps: Count,
    work_dropped: Count,
    /// Whether it is in the registry of suspended jobs. (In the lane, the registry's
    /// lock orders more.)
    registered: Count,
    /// Whether its deadline has passed. (The clock orders nothing.)
    expired: Count,
    /// A Tokio task of the job's, which the lane drops when it shuts down.
    part: Option<Part>,
}

#[derive(Default)]
struct Part {
    is_dropped: AtomicBool,
}

/// The output of a job, and what it returns without its part.
const OUTPUT: u8 = 7;
const NO_PART: u8 = 0;

impl Model {
    fn new() -> Arc<Self> {
        Self::queued(None)
    }

    fn queued(part: Option<Part>) -> Arc<Self> {
        let model = Self::unsubmitted(part);
        model.counters.submitted.add();
        model.queue.push(());
        model
    }

    fn unsubmitted(part: Option<Part>) -> Arc<Self> {
        Arc::new(Self {
            completion: Completion::new(State::queued(), Slot::Empty),
            queue: Queue::new(),
            closed: AtomicBool::new(false),
            counters: Counters::default(),
            steps: Count::default(),
            work_dropped: Count::default(),
            registered: Count::default(),
            expired: Count::default(),
            part,
        })
    }

    fn state(&self) -> &State {
        &self.completion.state
    }

    fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// `was_suspended`: the counters had it as suspended until now.
    fn notify_closed(&self, cause: CloseReason, interest: JoinInterest, was_suspended: bool) {
        self.counters.closed.add();
        if was_suspended {
            self.counters.closed_suspended.add();
        } else {
            self.counters.closed_queued.add();
        }
        self.completion.closed(cause, interest);
    }

    fn close(&self, cause: CloseReason) {
        match self.state().close(cause) {
            Close::WasQueued(interest) => self.notify_closed(cause, interest, false),
            Close::WasIdle(interest) => self.notify_closed(cause, interest, true),
            Close::No => {}
        }
    }

    /// Drops the work, if it is still there. (Several threads may call it: the slot's
    /// lock gives the work to one of them.)
    fn discard(&self) {
        if self.work_dropped.get() == 0 {
            self.work_dropped.add();
        }
    }

    /// Pops the job from the queue, if it is there, and runs one step.
    fn run_next(&self) -> bool {
        if self.queue.pop().is_none() {
            return false;
        }
        if self.is_closed() {
            self.close(CloseReason::ShutDown);
            self.discard();
            return true;
        }
        if self.expired.get() > 0 {
            self.close(CloseReason::Expired);
        }
        if self.state().to_running() == ToRunning::Discard {
            self.discard();
            return true;
        }
        self.counters.begun.add();
        assert_eq!(self.work_dropped.get(), 0, "run without its work");
        self.steps.add();
        let is_last = self.steps.get() == STEPS;
        let part = self.part.as_ref();
        let lost = is_last && part.is_some_and(|part| part.is_dropped.load(SeqCst));
        let is_cut_short = part.is_some() && self.is_closed();
        if is_last && !is_cut_short {
            self.discard();
            let output = if lost { NO_PART } else { OUTPUT };
            *self.completion.slot() = Slot::Output(Ok(output));
            self.counters.completed.add();
            wake(self.completion.finish());
        } else {
            self.pause();
        }
        true
    }

    fn pause(&self) {
        if self.registered.get() == 0 {
            self.registered.add();
        }
        self.counters.suspended.add();
        match self.state().to_idle(|| self.is_closed()) {
            ToIdle::Suspended => {}
            ToIdle::Requeue => {
                self.counters.woken.add();
                self.queue.push(());
            }
            ToIdle::Discard {
                cause,
                interest,
                was_queued,
            } => {
                self.notify_closed(cause, interest, !was_queued);
                self.discard();
            }
        }
    }

    fn wake(&self) {
        if self.state().wake() {
            self.counters.woken.add();
            self.enqueue();
        }
    }

    fn cancel(&self) {
        self.state().request_cancel();
        match self.state().close(CloseReason::Cancelled) {
            Close::WasQueued(interest) => {
                self.notify_closed(CloseReason::Cancelled, interest, false)
            }
            Close::WasIdle(interest) => {
                self.notify_closed(CloseReason::Cancelled, interest, true);
                self.enqueue();
            }
            Close::No => {}
        }
    }

    fn submit(&self) {
        self.counters.submitted.add();
        self.enqueue();
    }

    /// As the lane does: a thread that pushes reads `closed` afterwards. The control
    /// thread has ended already.
    fn enqueue(&self) {
        self.queue.push(());
        fence(SeqCst);
        if self.is_closed() {
            self.close_queued();
        }
    }

    fn close_queued(&self) {
        while self.queue.pop().is_some() {
            self.close(CloseReason::ShutDown);
            if self.state().has_ended() {
                self.discard();
            }
        }
    }

    /// What the closing thread and the control thread do.
    fn shut_down(&self) {
        self.closed.store(true, SeqCst);
        fence(SeqCst);
        self.close_queued();
        if self.registered.get() > 0 {
            self.close(CloseReason::ShutDown);
            if self.state().has_ended() {
                self.discard();
            }
        }
        if let Some(part) = &self.part {
            part.is_dropped.store(true, SeqCst);
        }
    }

    fn join(&self) -> Result<u8, error::JoinError> {
        block_on(poll_fn(|cx| self.completion.poll(cx)))
    }

    /// The job has ended once, and the counters agree.
    #[track_caller]
    fn check_end(&self) {
        assert_eq!(self.work_dropped.get(), 1);
        assert_eq!(self.counters.ended(), 1);
        assert_eq!(self.counters.queued(), 0, "queued");
        assert_eq!(self.counters.running(), 0, "running");
        assert_eq!(self.counters.suspended(), 0, "suspended");
    }
}

/// Runs `call` on a thread of its own.
fn on_thread(job: &Arc<Model>, call: fn(&Model)) -> thread::JoinHandle<()> {
    let job = job.clone();
    thread::spawn(move || call(&job))
}

/// Wake and cancel during a step: the awaiter is notified, the work is dropped once and
/// never runs after that.
#[test]
fn wake_and_cancel_against_a_step() {
    model(|| {
        let job = Model::new();
        let waker = on_thread(&job, Model::wake);
        let canceller = on_thread(&job, Model::cancel);
        job.run_next();
        waker.join().unwrap();
        canceller.join().unwrap();
        while job.run_next() {}
        // A wake before the first step wakes nothing, so the job may still be
        // suspended. But it was cancelled, so it has ended.
        match job.join() {
            Ok(output) => assert_eq!(output, OUTPUT),
            Err(error) => assert!(error.is_cancelled()),
        }
        job.check_end();
    });
}

/// A cancel and a deadline during a step: the job ends once, for one reason.
#[test]
fn cancel_and_deadline_against_a_step() {
    model(|| {
        let job = Model::new();
        let canceller = on_thread(&job, Model::cancel);
        let clock = on_thread(&job, |job| job.expired.add());
        job.run_next();
        job.wake();
        clock.join().unwrap();
        while job.run_next() {}
        canceller.join().unwrap();
        while job.run_next() {}
        let error = job.join().unwrap_err();
        assert!(error.is_cancelled() || error.is_expired());
        job.check_end();
    });
}

/// A submission while the lane closes, with no worker to run the job: its awaiter is
/// notified once.
#[test]
fn a_submission_against_a_shutdown() {
    model(|| {
        let job = Model::unsubmitted(None);
        let control = on_thread(&job, Model::shut_down);
        job.submit();
        control.join().unwrap();
        if job.queue.pop().is_some() {
            panic!("it is forgotten in the queue");
        }
        assert!(job.join().unwrap_err().is_shutdown());
        job.check_end();
    });
}

/// A wake while the lane closes: no job stays suspended forever, and no counter is off.
#[test]
fn wake_and_shutdown_against_a_step() {
    model(|| {
        let job = Model::new();
        let waker = on_thread(&job, Model::wake);
        let control = on_thread(&job, Model::shut_down);
        job.run_next();
        waker.join().unwrap();
        control.join().unwrap();
        while job.run_next() {}
        match job.join() {
            Ok(output) => assert_eq!(output, OUTPUT),
            Err(error) => assert!(error.is_shutdown()),
        }
        job.check_end();
    });
}

/// A job in its last step, while the lane closes and drops a part of it: it ends as shut
/// down, or with the output that it has with the part.
#[test]
fn a_shutdown_against_a_job_with_a_part() {
    model(|| {
        let job = Model::queued(Some(Part::default()));
        // One step is left.
        job.steps.add();
        let control = on_thread(&job, Model::shut_down);
        let waker = on_thread(&job, Model::wake);
        job.run_next();
        waker.join().unwrap();
        control.join().unwrap();
        while job.run_next() {}
        match job.join() {
            Ok(output) => assert_eq!(output, OUTPUT),
            Err(error) => assert!(error.is_shutdown()),
        }
        job.check_end();
    });
}

/// A cancel in addition: one of the two close reasons counts.
#[test]
fn cancel_and_shutdown_against_a_step_that_is_woken() {
    model(|| {
        let job = Model::new();
        let canceller = on_thread(&job, Model::cancel);
        let control = on_thread(&job, Model::shut_down);
        let waker = on_thread(&job, Model::wake);
        job.run_next();
        waker.join().unwrap();
        canceller.join().unwrap();
        control.join().unwrap();
        while job.run_next() {}
        let result = job.join();
        assert!(result.is_ok_and(|output| output == OUTPUT) || job.counters.closed.get() == 1);
        job.check_end();
    });
}

/// Code that outlives the job asks the job's context: it does not see a cancel that
/// comes after the end.
#[test]
fn a_cancel_against_the_end() {
    model(|| {
        let job = Model::new();
        // One step is left.
        job.steps.add();
        let canceller = thread::spawn({
            let job = job.clone();
            move || {
                let came_after = job.state().has_ended();
                job.cancel();
                came_after
            }
        });
        job.run_next();
        let is_wanted = job.state().is_cancel_requested();
        let came_after = canceller.join().unwrap();
        assert!(!(came_after && job.state().is_cancel_requested()));
        // The cancel came before the end, or has no effect: a later look finds the
        // same.
        assert_eq!(job.state().is_cancel_requested(), is_wanted);
        job.cancel();
        assert_eq!(job.state().is_cancel_requested(), is_wanted);
        match job.join() {
            Ok(output) => assert_eq!(output, OUTPUT),
            // It was still in the queue.
            Err(error) => assert!(error.is_cancelled() && is_wanted),
        }
        job.check_end();
    });
}

/// A wake of a suspended job is not lost.
#[test]
fn a_wake_is_not_lost() {
    model(|| {
        let job = Model::new();
        let runner = on_thread(&job, |job| {
            // The step registers its waker; the other thread wakes it.
            job.run_next();
        });
        job.wake();
        runner.join().unwrap();
        job.wake();
        while job.run_next() {}
        assert_eq!(job.join().unwrap(), OUTPUT);
        job.check_end();
    });
}

/// What a runner does with its output.
fn finish<T>(completion: &Completion<T>, output: T) {
    *completion.slot() = Slot::Output(Ok(output));
    wake(completion.finish());
}

/// The awaiter gets the output, whether it sleeps or not.
#[test]
fn finish_against_await() {
    model(|| {
        let completion = Arc::new(Completion::<_>::running());
        let runner = thread::spawn({
            let completion = completion.clone();
            move || finish(&completion, vec![1])
        });
        let output = block_on(poll_fn(|cx| completion.poll(cx)));
        assert_eq!(output.unwrap(), [1]);
        runner.join().unwrap();
    });
}

/// A job finishes while its `Task` is dropped: one of the two threads drops the output.
#[test]
fn finish_against_a_dropped_task() {
    model(|| {
        let output = Arc::new(());
        let completion = Arc::new(Completion::<_>::running());
        let runner = thread::spawn({
            let completion = completion.clone();
            let output = output.clone();
            move || finish(&completion, output)
        });
        completion.drop_join_handle();
        runner.join().unwrap();
        assert_eq!(Arc::strong_count(&output), 1, "the output is still there");
    });
}

/// A `spawn_io` finishes while a canceller closes it: one outcome.
#[test]
fn try_finish_against_cancel() {
    model(|| {
        let completion = Arc::new(Completion::<_>::running());
        let runner = thread::spawn({
            let completion = completion.clone();
            move || completion.try_finish(Ok(5))
        });
        let interest = completion.state.close_running(CloseReason::Cancelled);
        let cancelled = interest.is_some();
        if let Some(interest) = interest {
            completion.closed(CloseReason::Cancelled, interest);
        }
        match block_on(poll_fn(|cx| completion.poll(cx))) {
            Ok(output) => assert!(!cancelled && output == 5),
            Err(error) => assert!(cancelled && error.is_cancelled()),
        }
        runner.join().unwrap();
    });
}
