//! The protocols, in every interleaving that loom can think of.
//!
//! The files under test are compiled into this crate as they are, with loom's
//! atomics in the place of the standard library's (`src/sync.rs`).

#![allow(
    dead_code,
    unreachable_pub,
    unnameable_types,
    reason = "the files are written for another crate, and only a part is used"
)]

#[path = "../src/error.rs"]
mod error;
#[path = "../src/panics.rs"]
mod panics;
#[path = "support/loom_sync.rs"]
mod sync;
#[path = "../src/job"]
mod job {
    pub mod completion;
    pub mod state;
}
#[path = "../src/io/bridge.rs"]
mod bridge;
#[path = "../src/lane/opening.rs"]
mod opening;
#[path = "../src/backend/tickets.rs"]
mod tickets;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use job::completion::Completion;
use job::state::{Cause, Close, Paused, Start, State};
use loom::future::block_on;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicUsize, fence};
use loom::thread;
use opening::{Opening, Pushed};
use sync::Queue;
use tickets::Tickets;

/// Every interleaving with at most three preemptions: the bound under which
/// the longest model ends in seconds. `LOOM_MAX_PREEMPTIONS=5` looks further.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(f);
}

/// The lane and a future on it, as in `job/mod.rs`, with counters where the
/// work would be.
struct Model {
    completion: Completion<u8>,
    queue: Queue<()>,
    closed: AtomicBool,
    work_is_there: AtomicBool,
    work_dropped: AtomicUsize,
    steps: AtomicUsize,
}

impl Model {
    fn new() -> Arc<Self> {
        let model = Self {
            completion: Completion::new(State::queued()),
            queue: Queue::new(),
            closed: AtomicBool::new(false),
            work_is_there: AtomicBool::new(true),
            work_dropped: AtomicUsize::new(0),
            steps: AtomicUsize::new(0),
        };
        model.queue.push(());
        Arc::new(model)
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

    fn must_close(&self) -> Option<Cause> {
        if self.state().cancel_is_wanted() {
            Some(Cause::Cancelled)
        } else if self.closed.load(SeqCst) {
            Some(Cause::ShutDown)
        } else {
            None
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
            self.completion.finish(Ok(7));
            return true;
        }
        match self.state().pause(|| self.must_close()) {
            Paused::Rest => {}
            Paused::Requeue => self.queue.push(()),
            Paused::Discard(_) => {
                self.completion.wake_awaiter();
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

    fn cancel(&self) {
        self.state().want_cancel();
        let found = self.state().close(Cause::Cancelled);
        if found != Close::No {
            self.completion.wake_awaiter();
        }
        if found == Close::WasIdle {
            self.queue.push(());
        }
    }

    /// What the warden does for a suspended job.
    fn shut_down(&self) {
        self.closed.store(true, SeqCst);
        fence(SeqCst);
        match self.state().close(Cause::ShutDown) {
            Close::No => {}
            Close::WasIdle => {
                self.completion.wake_awaiter();
                self.discard();
            }
            Close::WasQueued => self.completion.wake_awaiter(),
        }
    }

    fn join(&self) -> Result<u8, error::JoinError> {
        block_on(poll_fn(|cx| self.completion.poll(cx)))
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
            move || job.cancel()
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

/// The output goes to the awaiter, who sleeps or doesn't.
#[test]
fn finish_against_await() {
    model(|| {
        let completion = Arc::new(Completion::new(State::running()));
        let runner = thread::spawn({
            let completion = completion.clone();
            move || completion.finish(Ok(vec![1]))
        });
        let output = block_on(poll_fn(|cx| completion.poll(cx)));
        assert_eq!(output.unwrap(), [1]);
        runner.join().unwrap();
    });
}

/// Finished while its task is dropped: the output is dropped, by one of them.
#[test]
fn finish_against_abandon() {
    model(|| {
        let output = Arc::new(());
        let completion = Arc::new(Completion::new(State::running()));
        let runner = thread::spawn({
            let completion = completion.clone();
            let output = output.clone();
            move || completion.finish(Ok(output))
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
        let completion = Arc::new(Completion::new(State::running()));
        let runner = thread::spawn({
            let completion = completion.clone();
            move || completion.try_finish(Ok(5))
        });
        let cancelled = completion.state.close_running(Cause::Cancelled);
        if cancelled {
            completion.wake_awaiter();
        }
        match block_on(poll_fn(|cx| completion.poll(cx))) {
            Ok(output) => assert!(!cancelled && output == 5),
            Err(error) => assert!(cancelled && error.is_cancelled()),
        }
        runner.join().unwrap();
    });
}

/// Two push, one worker drains: when all have gone, the queue is empty. (Of
/// the queue it has the length only, as one atomic: a model's own lock, or
/// `SeqCst`, would order what the fences are for.)
#[test]
fn no_job_is_left_without_a_ticket() {
    model(|| {
        let lane = Arc::new((AtomicUsize::new(0), Tickets::new(1), AtomicUsize::new(0)));
        let push_and_drain = |lane: &(AtomicUsize, Tickets, AtomicUsize)| {
            let (queued, tickets, ran) = lane;
            let is_empty = || queued.load(Acquire) == 0;
            queued.fetch_add(1, AcqRel);
            // The ticket's worker is this thread.
            if tickets.try_issue() {
                loop {
                    while !is_empty() {
                        queued.fetch_sub(1, AcqRel);
                        ran.fetch_add(1, SeqCst);
                    }
                    if tickets.retire(is_empty) {
                        break;
                    }
                }
            }
        };
        let other = thread::spawn({
            let lane = lane.clone();
            move || push_and_drain(&lane)
        });
        push_and_drain(&lane);
        other.join().unwrap();
        assert_eq!(lane.2.load(SeqCst), 2);
        assert_eq!(lane.0.load(SeqCst), 0);
        // And the count is back: a ticket can be had.
        assert!(lane.1.try_issue());
    });
}

/// A queue whose threads are not there yet, as in `lane/level.rs`; its length
/// only, here too.
struct Unopened {
    queued: AtomicUsize,
    opening: Opening,
    kicks: AtomicUsize,
    asked: AtomicUsize,
}

impl Unopened {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queued: AtomicUsize::new(0),
            opening: Opening::new(),
            kicks: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
        })
    }

    fn push(&self) {
        self.queued.fetch_add(1, AcqRel);
        match self.opening.pushed() {
            Pushed::Kick => {
                self.kicks.fetch_add(1, SeqCst);
            }
            Pushed::Ask => {
                self.asked.fetch_add(1, SeqCst);
            }
            Pushed::Rest => {}
        }
    }
}

/// Each job that came before the threads, or as they came, gets its kick; and
/// they are asked for once.
#[test]
fn no_job_is_left_behind_as_the_threads_come() {
    model(|| {
        let level = Unopened::new();
        level.push();
        let [a, b] = [(); 2].map(|()| {
            let level = level.clone();
            thread::spawn(move || level.push())
        });
        // What the one does who was asked.
        level.opening.opened();
        let seen = level.queued.load(Acquire);
        level.kicks.fetch_add(seen, SeqCst);
        a.join().unwrap();
        b.join().unwrap();
        assert!(level.kicks.load(SeqCst) >= 3);
        assert_eq!(level.asked.load(SeqCst), 1);
    });
}

/// If there are none to be had, each job is ended, or has asked anew.
#[test]
fn no_job_is_left_behind_if_there_are_no_threads() {
    model(|| {
        let level = Unopened::new();
        level.push();
        let [a, b] = [(); 2].map(|()| {
            let level = level.clone();
            thread::spawn(move || level.push())
        });
        level.opening.failed();
        let ended = level.queued.load(Acquire);
        level.queued.fetch_sub(ended, AcqRel);
        a.join().unwrap();
        b.join().unwrap();
        let waits = level.queued.load(SeqCst) > 0;
        assert!(!waits || level.asked.load(SeqCst) == 2);
    });
}

/// All that was written is read, and only then the end; with a limit that
/// makes the writer wait each time.
#[test]
fn the_bridge_carries_all_and_its_end() {
    model(|| {
        let (mut writer, mut reader) = bridge::channel::<u8>(1, "I/O");
        let pump = thread::spawn(move || {
            for item in 1..=2 {
                let room = block_on(poll_fn(|cx| writer.poll_room(cx)));
                assert_eq!(room, bridge::Room::Yes);
                writer.send(item, 1);
            }
            writer.complete();
        });
        let mut next = || block_on(poll_fn(|cx| reader.poll_read(cx)));
        assert_eq!(next().unwrap().unwrap(), 1);
        assert_eq!(next().unwrap().unwrap(), 2);
        assert!(next().is_none());
        pump.join().unwrap();
    });
}

/// A writer that is dropped is an error, after what it had written.
#[test]
fn a_lost_writer_is_no_end() {
    model(|| {
        let (mut writer, mut reader) = bridge::channel::<u8>(8, "I/O");
        let pump = thread::spawn(move || {
            writer.send(1, 1);
            drop(writer);
        });
        let mut next = || block_on(poll_fn(|cx| reader.poll_read(cx)));
        assert_eq!(next().unwrap().unwrap(), 1);
        assert!(next().unwrap().is_err());
        pump.join().unwrap();
    });
}

/// A reader that goes while the writer waits for room.
#[test]
fn a_gone_reader_frees_the_writer() {
    model(|| {
        let (mut writer, reader) = bridge::channel::<u8>(1, "I/O");
        writer.send(1, 1);
        let other = thread::spawn(move || drop(reader));
        let room = block_on(poll_fn(|cx| match writer.poll_room(cx) {
            // Its buffer is emptied as it goes.
            Poll::Ready(bridge::Room::Yes) | Poll::Pending => Poll::Pending,
            gone => gone,
        }));
        assert_eq!(room, bridge::Room::ReaderGone);
        other.join().unwrap();
    });
}
