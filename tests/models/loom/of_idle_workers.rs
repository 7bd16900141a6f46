//! The workers and the lane's queue.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::Notify;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicBool, fence};
use loom::thread;

use crate::idle::{Idle, Wakeup};
use crate::model;
use crate::sync::Queue;

/// A lane, as in `pool/mod.rs`. A thread that spawns a drain job
/// also plays the worker which runs it.
struct LaneModel {
    queue: Queue<()>,
    idle: Idle,
    /// Counted outside of the model, so that it orders nothing there. `spawned` too.
    ran: AtomicUsize,
    /// Drain jobs spawned by an active worker, which goes on with its own job.
    spawned: AtomicUsize,
    unparked: Notify,
    /// Parking is off: as for `Handle::install`, and at the end of a test.
    parking_off: AtomicBool,
}

impl LaneModel {
    fn with_workers(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(),
            idle: Idle::new(workers),
            ran: AtomicUsize::new(0),
            spawned: AtomicUsize::new(0),
            unparked: Notify::new(),
            parking_off: AtomicBool::new(false),
        })
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn push(&self) -> Wakeup {
        self.queue.push(());
        fence(SeqCst);
        self.idle.notify()
    }

    /// A push and what follows from it. If it spawns a drain job, this thread plays its
    /// worker.
    fn push_and_drain(&self, then: WhenIdle) {
        match self.push() {
            Wakeup::Spawn => self.drain(0, then),
            other => self.handle(other),
        }
    }

    fn handle(&self, notify: Wakeup) {
        match notify {
            Wakeup::Nothing => {}
            Wakeup::Spawn => drop(self.spawned.fetch_add(1, SeqCst)),
            Wakeup::Unpark(0) => self.unparked.notify(),
            Wakeup::Unpark(other) => unreachable!("only worker 0 parks, not {other}"),
        }
    }

    /// No worker parks from now on.
    fn keep_from_parking(&self) {
        self.parking_off.store(true, SeqCst);
        fence(SeqCst);
        if self.idle.unpark_any().is_some() {
            self.unparked.notify();
        }
    }

    fn drain(&self, worker: usize, then: WhenIdle) {
        let mut searching = true;
        loop {
            while self.queue.pop().is_some() {
                if std::mem::take(&mut searching) {
                    self.handle(self.idle.found(|| self.is_empty()));
                }
                self.ran.fetch_add(1, SeqCst);
            }
            let must_not_park = || !self.is_empty() || self.parking_off.load(SeqCst);
            let parks =
                matches!(then, WhenIdle::Parks | WhenIdle::Looks) && !self.parking_off.load(SeqCst);
            if parks && self.idle.try_park(worker, &mut searching, must_not_park) {
                searching = true;
                // The timeout may pass at once: the worker then looks for other work.
                if then == WhenIdle::Looks && self.idle.unpark(worker) {
                    searching = false;
                    self.handle(self.idle.found(|| self.is_empty()));
                } else {
                    while self.idle.is_parked() {
                        self.unparked.wait();
                    }
                    continue;
                }
            }
            match self.idle.deactivate(searching, || self.is_empty()) {
                Wakeup::Spawn => searching = true,
                other => {
                    self.handle(other);
                    return;
                }
            }
        }
    }

    /// As `ActiveWorkers::cannot_drain`: a drain job runs where it cannot drain. In
    /// this model a broadcast drain job is like any other (`of_broadcasts.rs` has its copies).
    fn cannot_drain(&self) {
        self.handle(self.idle.deactivate(true, || self.is_empty()));
    }

    /// Whether there was a spawned drain job.
    fn take_spawned(&self) -> bool {
        let one_less = |spawned: usize| spawned.checked_sub(1);
        let taken = self.spawned.fetch_update(SeqCst, SeqCst, one_less);
        taken.is_ok()
    }

    /// The spawned drain jobs reach their workers, one by one.
    fn use_spawned(&self) {
        while self.take_spawned() {
            self.drain(0, WhenIdle::Goes);
        }
    }

    fn check(&self, jobs: usize) {
        assert_eq!(self.ran.load(SeqCst), jobs);
        assert!(self.is_empty());
        // The word is consistent: a new push can still wake a worker.
        assert_ne!(self.idle.notify(), Wakeup::Nothing);
    }
}

/// What an active worker does that finds no job.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WhenIdle {
    Goes,
    Parks,
    Looks,
}

/// Two threads push, and each that spawns a drain job drains the queue. When both have
/// ended, the queue is empty. A worker that is idle goes, or parks: then a push wakes it, or the end of
/// the test does, or its timeout passes at that moment.
#[test]
fn no_job_is_left_without_an_active_worker() {
    for others in [WhenIdle::Goes, WhenIdle::Parks, WhenIdle::Looks] {
        for workers in [1, 2] {
            println!("{workers} workers, {others:?}");
            model(move || {
                let lane = LaneModel::with_workers(workers);
                let other = thread::spawn({
                    let lane = lane.clone();
                    move || lane.push_and_drain(others)
                });
                lane.push_and_drain(WhenIdle::Goes);
                lane.keep_from_parking();
                other.join().unwrap();
                lane.use_spawned();
                lane.check(2);
            });
        }
    }
}

/// Three threads try to unpark the same worker, one of them the worker itself: one
/// succeeds.
#[test]
fn a_parked_worker_is_woken_once() {
    model(|| {
        let idle = Arc::new(Idle::new(1));
        assert_eq!(idle.notify(), Wakeup::Spawn);
        assert!(idle.try_park(0, &mut true, || false));
        let others = [(); 2].map(|()| {
            let idle = idle.clone();
            thread::spawn(move || idle.notify() == Wakeup::Unpark(0))
        });
        let itself = idle.unpark(0);
        let woken = others.map(|other| other.join().unwrap());
        let times = woken.into_iter().filter(|woken| *woken).count() + usize::from(itself);
        assert_eq!(times, 1);
    });
}

/// A drain job runs where it cannot drain, while another thread pushes. The worker
/// deactivates and, if an active worker is still needed, broadcasts. Another worker
/// takes the broadcast, or it too runs where it cannot drain.
#[test]
fn no_job_is_left_by_a_drain_job_that_cannot_drain() {
    for refusals in [1, 2] {
        for workers in [1, 2] {
            model(move || {
                let lane = LaneModel::with_workers(workers);
                assert_eq!(lane.push(), Wakeup::Spawn);
                let other = thread::spawn({
                    let lane = lane.clone();
                    move || lane.push_and_drain(WhenIdle::Goes)
                });
                lane.spawned.fetch_add(1, SeqCst);
                for _ in 0..refusals {
                    if lane.take_spawned() {
                        lane.cannot_drain();
                    }
                }
                other.join().unwrap();
                lane.use_spawned();
                lane.check(2);
            });
        }
    }
}

/// The same while the other worker is parked: that one is woken for the job.
#[test]
fn a_drain_job_that_cannot_drain_wakes_the_parked_worker() {
    model(|| {
        let lane = LaneModel::with_workers(2);
        assert_eq!(lane.push(), Wakeup::Spawn);
        let other = thread::spawn({
            let lane = lane.clone();
            move || lane.push_and_drain(WhenIdle::Parks)
        });
        lane.cannot_drain();
        lane.keep_from_parking();
        other.join().unwrap();
        lane.use_spawned();
        lane.check(2);
    });
}

/// A job waits for a later one. As long as a worker is free, it takes the later job.
/// (Otherwise loom reports that all threads are blocked.)
#[test]
fn no_job_is_left_behind_one_that_waits_for_it() {
    struct Pair {
        queue: Queue<()>,
        idle: Idle,
        begun: AtomicUsize,
        both_run: Notify,
    }

    impl Pair {
        fn push(self: &Arc<Self>) {
            self.queue.push(());
            fence(SeqCst);
            self.handle(self.idle.notify());
        }

        fn handle(self: &Arc<Self>, notify: Wakeup) {
            if notify == Wakeup::Spawn {
                let lane = self.clone();
                thread::spawn(move || lane.drain());
            }
        }

        fn drain(self: &Arc<Self>) {
            let is_empty = || self.queue.is_empty();
            let mut searching = true;
            loop {
                while self.queue.pop().is_some() {
                    if std::mem::take(&mut searching) {
                        self.handle(self.idle.found(is_empty));
                    }
                    if self.begun.fetch_add(1, SeqCst) == 0 {
                        self.both_run.wait();
                    } else {
                        self.both_run.notify();
                    }
                }
                match self.idle.deactivate(searching, is_empty) {
                    Wakeup::Spawn => searching = true,
                    _ => return,
                }
            }
        }
    }

    model(|| {
        let lane = Arc::new(Pair {
            queue: Queue::new(),
            idle: Idle::new(2),
            begun: AtomicUsize::new(0),
            both_run: Notify::new(),
        });
        lane.push();
        lane.push();
    });
}
