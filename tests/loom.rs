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

use job::completion::{Completion, Slot, wake};
use job::state::{Cause, Close, Paused, Start, State};
use loom::future::block_on;
use loom::sync::Notify;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicUsize, fence};
use loom::thread;
use opening::{Opening, Pushed};
use sync::Queue;
use tickets::{Kick, Tickets};

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
            completion: Completion::new(State::queued(), Slot::Empty),
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
            *self.completion.slot() = Slot::Output(Ok(7));
            wake(self.completion.finish());
            return true;
        }
        match self.state().pause(|| self.closed.load(SeqCst)) {
            Paused::Rest => {}
            Paused::Requeue => self.queue.push(()),
            Paused::Discard(cause, audience) => {
                self.completion.closed(cause, audience);
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
        match self.state().close(Cause::Cancelled) {
            Close::WasQueued(audience) => {
                self.completion.closed(Cause::Cancelled, audience);
            }
            Close::WasIdle(audience) => {
                self.completion.closed(Cause::Cancelled, audience);
                self.queue.push(());
            }
            Close::No => {}
        }
    }

    /// What the warden does for a suspended job.
    fn shut_down(&self) {
        self.closed.store(true, SeqCst);
        fence(SeqCst);
        match self.state().close(Cause::ShutDown) {
            Close::No => {}
            Close::WasIdle(audience) => {
                self.completion.closed(Cause::ShutDown, audience);
                self.discard();
            }
            Close::WasQueued(audience) => {
                self.completion.closed(Cause::ShutDown, audience);
            }
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
        match block_on(poll_fn(|cx| completion.poll(cx))) {
            Ok(output) => assert!(!cancelled && output == 5),
            Err(error) => assert!(cancelled && error.is_cancelled()),
        }
        runner.join().unwrap();
    });
}

/// A lane of the rayon backend, as in `backend/rayon.rs`: of its queue the
/// length only, as one atomic (a model's own lock, or `SeqCst`, would order
/// what the fences are for). A ticket's worker is the thread that spawns it.
struct Drained {
    queued: AtomicUsize,
    tickets: Tickets,
    ran: AtomicUsize,
    /// Tickets spawned by a drainer that goes on with its own job.
    spawned: AtomicUsize,
    unparked: Notify,
    /// As for `Handle::install`, and at the end.
    lent: AtomicBool,
}

impl Drained {
    fn with_workers(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            queued: AtomicUsize::new(0),
            tickets: Tickets::new(workers),
            ran: AtomicUsize::new(0),
            spawned: AtomicUsize::new(0),
            unparked: Notify::new(),
            lent: AtomicBool::new(false),
        })
    }

    fn is_empty(&self) -> bool {
        self.queued.load(Acquire) == 0
    }

    fn pop(&self) -> bool {
        let one_less = |queued: usize| queued.checked_sub(1);
        self.queued.fetch_update(AcqRel, Acquire, one_less).is_ok()
    }

    fn push(&self) -> Kick {
        self.queued.fetch_add(1, AcqRel);
        fence(SeqCst);
        self.tickets.kick()
    }

    /// A push, and what follows from it. A ticket's worker is the thread that
    /// gets it.
    fn push_and_drain(&self, then: Idle) {
        match self.push() {
            Kick::Spawn => self.drain(0, then),
            other => self.obey(other),
        }
    }

    fn obey(&self, kick: Kick) {
        match kick {
            Kick::Nothing => {}
            Kick::Spawn => drop(self.spawned.fetch_add(1, SeqCst)),
            Kick::Unpark(0) => self.unparked.notify(),
            Kick::Unpark(other) => unreachable!("only worker 0 parks, not {other}"),
        }
    }

    /// Nobody parks from now on.
    fn lend(&self) {
        self.lent.store(true, SeqCst);
        fence(SeqCst);
        if self.tickets.unpark_any().is_some() {
            self.unparked.notify();
        }
    }

    fn drain(&self, worker: usize, then: Idle) {
        let mut searching = true;
        loop {
            while self.pop() {
                if std::mem::take(&mut searching) {
                    self.obey(self.tickets.found(|| self.is_empty()));
                }
                self.ran.fetch_add(1, SeqCst);
            }
            if then == Idle::Lingers {
                searching = searching || self.tickets.try_search();
            }
            let shall_stay = || !self.is_empty() || self.lent.load(SeqCst);
            if then == Idle::Parks
                && !self.lent.load(SeqCst)
                && self.tickets.try_park(worker, &mut searching, shall_stay)
            {
                while self.tickets.is_parked() {
                    self.unparked.wait();
                }
                searching = true;
                continue;
            }
            match self.tickets.retire(searching, || self.is_empty()) {
                Kick::Spawn => searching = true,
                other => {
                    self.obey(other);
                    return;
                }
            }
        }
    }

    /// The tickets that were spawned come to their workers, one by one.
    fn use_spawned(&self) {
        while self.spawned.load(SeqCst) > 0 {
            self.spawned.fetch_sub(1, SeqCst);
            self.drain(0, Idle::Goes);
        }
    }

    fn check(&self, jobs: usize) {
        assert_eq!(self.ran.load(SeqCst), jobs);
        assert!(self.is_empty());
        // And the word is as it was: a ticket, or a parked worker, is to be had.
        assert_ne!(self.tickets.kick(), Kick::Nothing);
    }
}

/// What a drainer does that finds no job.
#[derive(Clone, Copy, PartialEq)]
enum Idle {
    Goes,
    Lingers,
    Parks,
}

/// Two push, and whoever gets a ticket drains: when all have gone, the queue is
/// empty.
fn no_job_is_left_without_a_drainer(workers: usize, [mine, others]: [Idle; 2]) {
    model(move || {
        let lane = Drained::with_workers(workers);
        let other = thread::spawn({
            let lane = lane.clone();
            move || lane.push_and_drain(others)
        });
        lane.push_and_drain(mine);
        lane.lend();
        other.join().unwrap();
        lane.use_spawned();
        lane.check(2);
    });
}

#[test]
fn no_job_is_left_by_one_drainer() {
    no_job_is_left_without_a_drainer(1, [Idle::Goes, Idle::Goes]);
}

#[test]
fn no_job_is_left_by_two_drainers() {
    no_job_is_left_without_a_drainer(2, [Idle::Goes, Idle::Goes]);
}

#[test]
fn no_job_is_left_by_drainers_that_linger() {
    no_job_is_left_without_a_drainer(2, [Idle::Lingers, Idle::Lingers]);
}

/// The one that parks is woken by a push, or by the end of the test.
#[test]
fn no_job_is_left_by_a_drainer_that_parks() {
    no_job_is_left_without_a_drainer(1, [Idle::Goes, Idle::Parks]);
    no_job_is_left_without_a_drainer(2, [Idle::Goes, Idle::Parks]);
}

/// Of two who want a parked worker, one gets it, or it is gone already.
#[test]
fn a_parked_worker_is_woken_once() {
    model(|| {
        let tickets = Arc::new(Tickets::new(1));
        assert_eq!(tickets.kick(), Kick::Spawn);
        assert!(tickets.try_park(0, &mut true, || false));
        let others = [(); 2].map(|()| {
            let tickets = tickets.clone();
            thread::spawn(move || tickets.kick() == Kick::Unpark(0))
        });
        let itself = tickets.unpark(0);
        let woken = others.map(|other| other.join().unwrap());
        let times = woken.into_iter().filter(|woken| *woken).count() + usize::from(itself);
        assert_eq!(times, 1);
    });
}

/// One pushes while another's ticket comes to a thread that can't use it, and
/// is spawned again later.
#[test]
fn no_job_is_left_while_a_ticket_is_put_off() {
    model(|| {
        let lane = Drained::with_workers(2);
        assert_eq!(lane.push(), Kick::Spawn);
        let other = thread::spawn({
            let lane = lane.clone();
            move || lane.push_and_drain(Idle::Goes)
        });
        lane.tickets.put_off();
        lane.tickets.resume();
        lane.drain(0, Idle::Goes);
        other.join().unwrap();
        lane.use_spawned();
        lane.check(2);
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
