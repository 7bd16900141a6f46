//! The rayon backend's workers at the queue.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::Notify;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicBool, fence};
use loom::thread;

use crate::idle::{Idle, Wakeup};
use crate::model;
use crate::sync::Queue;

/// A lane of the rayon backend, as in `backend/rayon.rs`. A ticket's worker is the
/// thread that spawns it.
struct Drained {
    queue: Queue<()>,
    idle: Idle,
    /// Counted outside of the model, so that it orders nothing there. The next too.
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
            queue: Queue::new(),
            idle: Idle::new(workers),
            ran: AtomicUsize::new(0),
            spawned: AtomicUsize::new(0),
            unparked: Notify::new(),
            lent: AtomicBool::new(false),
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

    /// A push, and what follows from it. A ticket's worker is the thread that
    /// gets it.
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
        self.lent.store(true, SeqCst);
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
            if then == WhenIdle::Lingers {
                searching = searching || self.idle.try_search();
            }
            let shall_stay = || !self.is_empty() || self.lent.load(SeqCst);
            let parks =
                matches!(then, WhenIdle::Parks | WhenIdle::Looks) && !self.lent.load(SeqCst);
            if parks && self.idle.try_park(worker, &mut searching, shall_stay) {
                searching = true;
                // Its time may be over at once: it looks for other work then.
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

    /// As `ActiveWorkers::refuse`: the caller can't use the ticket that it has. One that
    /// it offers to all is spawned, as far as the model goes.
    fn refuse(&self) {
        self.handle(self.idle.deactivate(true, || self.is_empty()));
    }

    /// Whether there was one.
    fn take_spawned(&self) -> bool {
        let one_less = |spawned: usize| spawned.checked_sub(1);
        let taken = self.spawned.fetch_update(SeqCst, SeqCst, one_less);
        taken.is_ok()
    }

    /// The idle that were spawned come to their workers, one by one.
    fn use_spawned(&self) {
        while self.take_spawned() {
            self.drain(0, WhenIdle::Goes);
        }
    }

    fn check(&self, jobs: usize) {
        assert_eq!(self.ran.load(SeqCst), jobs);
        assert!(self.is_empty());
        // And the word is as it was: a ticket, or a parked worker, is to be had.
        assert_ne!(self.idle.notify(), Wakeup::Nothing);
    }
}

/// What a drainer does that finds no job.
#[derive(Clone, Copy, PartialEq)]
enum WhenIdle {
    Goes,
    Lingers,
    Parks,
    Looks,
}

/// Two threads push, and each that gets a ticket drains: when all have gone, the
/// queue is empty.
fn no_job_is_left_without_a_drainer(workers: usize, [mine, others]: [WhenIdle; 2]) {
    model(move || {
        let lane = Drained::with_workers(workers);
        let other = thread::spawn({
            let lane = lane.clone();
            move || lane.push_and_drain(others)
        });
        lane.push_and_drain(mine);
        lane.keep_from_parking();
        other.join().unwrap();
        lane.use_spawned();
        lane.check(2);
    });
}

#[test]
fn no_job_is_left_by_one_drainer() {
    no_job_is_left_without_a_drainer(1, [WhenIdle::Goes, WhenIdle::Goes]);
}

#[test]
fn no_job_is_left_by_two_drainers() {
    no_job_is_left_without_a_drainer(2, [WhenIdle::Goes, WhenIdle::Goes]);
}

#[test]
fn no_job_is_left_by_drainers_that_linger() {
    no_job_is_left_without_a_drainer(2, [WhenIdle::Lingers, WhenIdle::Lingers]);
}

/// The one that parks is woken by a push, or by the end of the test.
#[test]
fn no_job_is_left_by_a_drainer_that_parks() {
    no_job_is_left_without_a_drainer(1, [WhenIdle::Goes, WhenIdle::Parks]);
    no_job_is_left_without_a_drainer(2, [WhenIdle::Goes, WhenIdle::Parks]);
}

/// The same if its time is over just then.
#[test]
fn no_job_is_left_by_a_drainer_that_looks_for_other_work() {
    no_job_is_left_without_a_drainer(1, [WhenIdle::Goes, WhenIdle::Looks]);
    no_job_is_left_without_a_drainer(2, [WhenIdle::Goes, WhenIdle::Looks]);
}

/// Of two threads that want a parked worker, one gets it, or it is gone already.
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

/// A ticket comes to a worker that can't use it, while another thread pushes: the
/// worker gives it back and, if it is still needed, offers it to all. Another takes
/// the offer, or it comes to such a worker once more.
#[test]
fn no_job_is_left_by_a_ticket_that_is_refused() {
    for refusals in [1, 2] {
        for workers in [1, 2] {
            model(move || {
                let lane = Drained::with_workers(workers);
                assert_eq!(lane.push(), Wakeup::Spawn);
                let other = thread::spawn({
                    let lane = lane.clone();
                    move || lane.push_and_drain(WhenIdle::Goes)
                });
                lane.spawned.fetch_add(1, SeqCst);
                for _ in 0..refusals {
                    if lane.take_spawned() {
                        lane.refuse();
                    }
                }
                other.join().unwrap();
                lane.use_spawned();
                lane.check(2);
            });
        }
    }
}

/// The same while the other one parks with its own: it is woken for the job.
#[test]
fn a_ticket_that_is_refused_wakes_the_parked_worker() {
    model(|| {
        let lane = Drained::with_workers(2);
        assert_eq!(lane.push(), Wakeup::Spawn);
        let other = thread::spawn({
            let lane = lane.clone();
            move || lane.push_and_drain(WhenIdle::Parks)
        });
        lane.refuse();
        lane.keep_from_parking();
        other.join().unwrap();
        lane.use_spawned();
        lane.check(2);
    });
}

/// A job may wait for one that comes after it: as long as a worker is free, that one
/// is taken by it. (If it is not, loom finds that all threads are blocked.)
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
