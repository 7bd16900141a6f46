//! A job's life, and the hand-back.

use std::future::poll_fn;
use std::sync::Arc;

use loom::future::block_on;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicBool, AtomicUsize, fence};
use loom::thread;

use crate::job::completion::{Completion, Slot, wake};
use crate::job::state::{Audience, Cause, Close, Paused, Start, State};
use crate::sync::Queue;
use crate::{error, model};

/// The lane and a future on it, as in `job/mod.rs`, with counters where the
/// work would be.
struct Model {
    completion: Completion<u8>,
    queue: Queue<()>,
    closed: AtomicBool,
    work_is_there: AtomicBool,
    work_dropped: AtomicUsize,
    steps: AtomicUsize,
    /// As in the books.
    endings: AtomicUsize,
}

impl Model {
    fn new() -> Arc<Self> {
        let model = Self::unsubmitted();
        model.queue.push(());
        model
    }

    fn unsubmitted() -> Arc<Self> {
        Arc::new(Self {
            completion: Completion::new(State::queued(), Slot::Empty),
            queue: Queue::new(),
            closed: AtomicBool::new(false),
            work_is_there: AtomicBool::new(true),
            work_dropped: AtomicUsize::new(0),
            steps: AtomicUsize::new(0),
            endings: AtomicUsize::new(0),
        })
    }

    fn tell_closed(&self, cause: Cause, audience: Audience) {
        self.endings.fetch_add(1, SeqCst);
        self.completion.closed(cause, audience);
    }

    fn state(&self) -> &State {
        &self.completion.state
    }

    /// Takes the work, if it is still there.
    fn discard(&self) {
        if self.work_is_there.swap(false, SeqCst) {
            self.work_dropped.fetch_add(1, SeqCst);
        }
    }

    /// Takes the job out of the queue, if it is there, for one step; it ends
    /// in the second.
    fn run_next(&self) -> bool {
        if self.queue.pop().is_none() {
            return false;
        }
        match self.state().start() {
            Start::Run => {}
            Start::Discard => {
                self.discard();
                return true;
            }
            Start::NotQueued => unreachable!("it came out of the queue"),
        }
        assert!(self.work_is_there.load(SeqCst), "run without its work");
        if self.steps.fetch_add(1, SeqCst) == 1 {
            self.discard();
            self.endings.fetch_add(1, SeqCst);
            *self.completion.slot() = Slot::Output(Ok(7));
            wake(self.completion.finish());
            return true;
        }
        match self.state().pause(|| self.closed.load(SeqCst)) {
            Paused::Rest => {}
            Paused::Requeue => self.queue.push(()),
            Paused::Discard(cause, audience) => {
                self.tell_closed(cause, audience);
                self.discard();
            }
        }
        true
    }

    fn wake(&self) {
        if self.state().wake() {
            self.queue.push(());
        }
    }

    /// A cancel, a deadline.
    fn end(&self, cause: Cause) {
        self.state().want_end(cause);
        match self.state().close(cause) {
            Close::WasQueued(audience) => self.tell_closed(cause, audience),
            Close::WasIdle(audience) => {
                self.tell_closed(cause, audience);
                self.queue.push(());
            }
            Close::No => {}
        }
    }

    /// As the lane does: whoever pushes looks afterwards.
    fn submit(&self) {
        self.queue.push(());
        fence(SeqCst);
        if self.closed.load(SeqCst) {
            self.sweep();
        }
    }

    fn sweep(&self) {
        while self.queue.pop().is_some() {
            if let Close::WasQueued(audience) = self.state().close(Cause::ShutDown) {
                self.tell_closed(Cause::ShutDown, audience);
            }
            self.discard();
        }
    }

    /// What the warden does for a suspended job.
    fn shut_down(&self) {
        self.closed.store(true, SeqCst);
        fence(SeqCst);
        match self.state().close(Cause::ShutDown) {
            Close::No => {}
            Close::WasIdle(audience) => {
                self.tell_closed(Cause::ShutDown, audience);
                self.discard();
            }
            Close::WasQueued(audience) => self.tell_closed(Cause::ShutDown, audience),
        }
    }

    fn join(&self) -> Result<u8, error::JoinError> {
        block_on(poll_fn(|cx| self.completion.poll(cx, || false)))
    }
}

/// Woken and cancelled while it runs: the awaiter is told, the work is dropped
/// once, and is never run after.
#[test]
fn wake_and_cancel_against_a_step() {
    model(|| {
        let job = Model::new();
        let waker = thread::spawn({
            let job = job.clone();
            move || job.wake()
        });
        let canceller = thread::spawn({
            let job = job.clone();
            move || job.end(Cause::Cancelled)
        });
        job.run_next();
        waker.join().unwrap();
        canceller.join().unwrap();
        while job.run_next() {}
        // Woken before it ever ran, it may rest still: that is a wake-up that
        // came before the wait. Cancelled, it can't.
        match job.join() {
            Ok(output) => assert_eq!(output, 7),
            Err(error) => assert!(error.is_cancelled()),
        }
        assert_eq!(job.work_dropped.load(SeqCst), 1);
        assert_eq!(job.endings.load(SeqCst), 1);
    });
}

/// A cancel and a deadline, beside a step: one ending, of one kind.
#[test]
fn cancel_and_deadline_against_a_step() {
    model(|| {
        let job = Model::new();
        let [canceller, warden] = [Cause::Cancelled, Cause::Expired].map(|cause| {
            let job = job.clone();
            thread::spawn(move || job.end(cause))
        });
        job.run_next();
        canceller.join().unwrap();
        warden.join().unwrap();
        while job.run_next() {}
        let error = job.join().unwrap_err();
        assert!(error.is_cancelled() || error.is_expired());
        assert_eq!(job.work_dropped.load(SeqCst), 1);
        assert_eq!(job.endings.load(SeqCst), 1);
    });
}

/// Submitted as the lane closes, with nobody to run it: it is told, once.
#[test]
fn a_submission_against_a_shutdown() {
    model(|| {
        let job = Model::unsubmitted();
        let warden = thread::spawn({
            let job = job.clone();
            move || {
                job.closed.store(true, SeqCst);
                fence(SeqCst);
                job.sweep();
            }
        });
        job.submit();
        warden.join().unwrap();
        if job.queue.pop().is_some() {
            panic!("it is forgotten in the queue");
        }
        assert!(job.join().unwrap_err().is_shutdown());
        assert_eq!(job.work_dropped.load(SeqCst), 1);
        assert_eq!(job.endings.load(SeqCst), 1);
    });
}

/// The same with a lane that closes: nothing rests for ever.
#[test]
fn wake_and_shutdown_against_a_step() {
    model(|| {
        let job = Model::new();
        let waker = thread::spawn({
            let job = job.clone();
            move || job.wake()
        });
        let warden = thread::spawn({
            let job = job.clone();
            move || job.shut_down()
        });
        job.run_next();
        waker.join().unwrap();
        warden.join().unwrap();
        while job.run_next() {}
        assert!(job.join().is_ok_and(|output| output == 7) || job.closed.load(SeqCst));
        assert_eq!(job.work_dropped.load(SeqCst), 1);
    });
}

/// A resting job is woken, and nobody loses that.
#[test]
fn a_wake_is_not_lost() {
    model(|| {
        let job = Model::new();
        let asked = Arc::new(AtomicBool::new(false));
        let runner = thread::spawn({
            let job = job.clone();
            let asked = asked.clone();
            move || {
                // The step registers its waker, which is then called.
                asked.store(true, SeqCst);
                job.run_next();
            }
        });
        job.wake();
        runner.join().unwrap();
        job.wake();
        while job.run_next() {}
        assert_eq!(job.join().unwrap(), 7);
    });
}

/// What a runner does with its output.
fn finish<T>(completion: &Completion<T>, output: T) {
    *completion.slot() = Slot::Output(Ok(output));
    wake(completion.finish());
}

/// The output goes to the awaiter, who sleeps or doesn't.
#[test]
fn finish_against_await() {
    model(|| {
        let completion = Arc::new(Completion::<_>::running());
        let runner = thread::spawn({
            let completion = completion.clone();
            move || finish(&completion, vec![1])
        });
        let output = block_on(poll_fn(|cx| completion.poll(cx, || false)));
        assert_eq!(output.unwrap(), [1]);
        runner.join().unwrap();
    });
}

/// Finished while its task is dropped: the output is dropped, by one of them.
#[test]
fn finish_against_abandon() {
    model(|| {
        let output = Arc::new(());
        let completion = Arc::new(Completion::<_>::running());
        let runner = thread::spawn({
            let completion = completion.clone();
            let output = output.clone();
            move || finish(&completion, output)
        });
        completion.abandon();
        runner.join().unwrap();
        assert_eq!(Arc::strong_count(&output), 1, "the output is still there");
    });
}

/// `spawn_io` finished on one side, cancelled on the other: one outcome.
#[test]
fn try_finish_against_cancel() {
    model(|| {
        let completion = Arc::new(Completion::<_>::running());
        let runner = thread::spawn({
            let completion = completion.clone();
            move || completion.try_finish(Ok(5))
        });
        let audience = completion.state.close_running(Cause::Cancelled);
        let cancelled = audience.is_some();
        if let Some(audience) = audience {
            completion.closed(Cause::Cancelled, audience);
        }
        match block_on(poll_fn(|cx| completion.poll(cx, || false))) {
            Ok(output) => assert!(!cancelled && output == 5),
            Err(error) => assert!(cancelled && error.is_cancelled()),
        }
        runner.join().unwrap();
    });
}
