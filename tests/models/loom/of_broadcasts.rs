//! The copies of a broadcast drain job, and the workers that come to them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicBool, fence};
use loom::sync::{Mutex, Notify};
use loom::thread;

use crate::copies::{Arrival, Copies, StackPlace};
use crate::idle::{Idle, Wakeup};
use crate::model;
use crate::sync::Queue;

const WORKERS: usize = 2;
const JOBS: usize = 3;

/// What rayon has for its workers.
struct Rayon {
    drain_jobs: usize,
    copies: [VecDeque<Arc<Copies>>; WORKERS],
}

enum RayonJob {
    Drain,
    Copy(Arc<Copies>),
}

/// A lane with two workers, as in `pool/mod.rs` and `pool/drain.rs`.
/// Worker 0 sleeps in rayon, and rayon wakes it for each drain job.
struct LaneModel {
    queue: Queue<()>,
    idle: Idle,
    rayon: Mutex<Rayon>,
    /// Worker 0 has something to do, or a job has run.
    woken: Notify,
    /// Counted outside of the model, so that it orders nothing there.
    ran: AtomicUsize,
    parking_off: AtomicBool,
    parks: bool,
}

/// A worker, and the copy that it settles before it becomes idle.
struct Worker {
    index: usize,
    declined: Option<Arc<Copies>>,
}

impl Worker {
    fn new(index: usize) -> Self {
        Self {
            index,
            declined: None,
        }
    }
}

impl LaneModel {
    /// One job is queued, and its drain job spawned.
    fn with_a_job(parks: bool) -> Arc<Self> {
        let lane = Arc::new(Self {
            queue: Queue::new(),
            idle: Idle::new(WORKERS),
            rayon: Mutex::new(Rayon {
                drain_jobs: 0,
                copies: Default::default(),
            }),
            woken: Notify::new(),
            ran: AtomicUsize::new(0),
            parking_off: AtomicBool::new(false),
            parks,
        });
        lane.push();
        lane
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn have_all_run(&self) -> bool {
        self.ran.load(SeqCst) == JOBS
    }

    fn push(&self) {
        self.queue.push(());
        fence(SeqCst);
        self.wake(self.idle.notify());
    }

    fn wake(&self, wakeup: Wakeup) {
        match wakeup {
            Wakeup::Nothing => return,
            Wakeup::Spawn => self.rayon.lock().unwrap().drain_jobs += 1,
            Wakeup::Unpark(worker) => assert_eq!(worker, 0, "only that one parks"),
        }
        self.woken.notify();
    }

    fn cannot_drain(&self) {
        match self.idle.deactivate(true, || self.is_empty()) {
            Wakeup::Spawn => {
                let copies = Arc::new(Copies::new(WORKERS));
                let mut rayon = self.rayon.lock().unwrap();
                for of_worker in &mut rayon.copies {
                    of_worker.push_back(copies.clone());
                }
                drop(rayon);
                self.woken.notify();
            }
            other => self.wake(other),
        }
    }

    fn settle(&self, copies: &Copies) {
        if copies.take() {
            self.cannot_drain();
        }
    }

    fn find(&self, worker: &Worker) -> Option<RayonJob> {
        let mut rayon = self.rayon.lock().unwrap();
        if let Some(copies) = rayon.copies[worker.index].pop_front() {
            return Some(RayonJob::Copy(copies));
        }
        rayon.drain_jobs = rayon.drain_jobs.checked_sub(1)?;
        Some(RayonJob::Drain)
    }

    fn arrive(&self, worker: &mut Worker, copies: Arc<Copies>, at: StackPlace) {
        match copies.arrive(at) {
            Arrival::Drains => self.drain(worker),
            // After a pause the control thread settles it. This thread plays that one.
            Arrival::Settles | Arrival::SettlesAfterPause => self.settle(&copies),
            Arrival::SettlesLater => {
                if let Some(older) = worker.declined.replace(copies) {
                    assert!(!older.take(), "a thread has taken the older one");
                }
            }
            Arrival::Nothing => {}
        }
    }

    /// Rayon's turn. Returns whether rayon had a job.
    fn turn(&self, worker: &mut Worker) -> bool {
        let job = self.find(worker);
        let found = job.is_some();
        match job {
            Some(RayonJob::Drain) => self.cannot_drain(),
            Some(RayonJob::Copy(copies)) => self.arrive(worker, copies, StackPlace::Draining),
            None => {}
        }
        if let Some(copies) = worker.declined.take() {
            self.settle(&copies);
        }
        found
    }

    fn drain(&self, worker: &mut Worker) {
        let mut searching = true;
        let end_search = |searching: &mut bool| {
            if std::mem::take(searching) {
                self.wake(self.idle.found(|| self.is_empty()));
            }
        };
        loop {
            while self.queue.pop().is_some() {
                end_search(&mut searching);
                if self.ran.fetch_add(1, SeqCst) + 1 == JOBS {
                    self.woken.notify();
                }
            }
            end_search(&mut searching);
            if !self.is_empty() || self.turn(worker) {
                continue;
            }
            let is_off = || self.parking_off.load(SeqCst);
            if self.parks && worker.index == 0 && !is_off() {
                let must_not_park = || !self.is_empty() || is_off();
                if self.idle.try_park(0, &mut searching, must_not_park) {
                    while self.idle.is_parked() {
                        self.woken.wait();
                    }
                    searching = true;
                    continue;
                }
            }
            match self.idle.deactivate(searching, || self.is_empty()) {
                Wakeup::Spawn => searching = true,
                other => return self.wake(other),
            }
        }
    }

    /// Rayon's main loop of worker 0, until all jobs have run. (If no thread wakes it before,
    /// loom reports that all threads are blocked.)
    ///
    /// Before that it waits in rayon's own work, where it comes to so many drain jobs and copies.
    fn run_worker_0(&self, used_up: usize) {
        let mut worker = Worker::new(0);
        for job in std::iter::from_fn(|| self.find(&Worker::new(0))).take(used_up) {
            match job {
                RayonJob::Drain => self.cannot_drain(),
                RayonJob::Copy(copies) => self.arrive(&mut worker, copies, StackPlace::Waiting),
            }
        }
        loop {
            match self.find(&worker) {
                Some(RayonJob::Drain) => self.drain(&mut worker),
                Some(RayonJob::Copy(copies)) => {
                    self.arrive(&mut worker, copies, StackPlace::Bottom)
                }
                None if self.have_all_run() => return,
                None => self.woken.wait(),
            }
        }
    }

    /// Worker 1 comes to so many of its copies, if it has so many. (Where it uses them up, each may
    /// be followed by another one.)
    fn use_copies_of_worker_1(&self, most: usize, at: StackPlace) {
        let mut worker = Worker::new(1);
        let next = || self.rayon.lock().unwrap().copies[1].pop_front();
        for copies in std::iter::from_fn(next).take(most) {
            self.arrive(&mut worker, copies, at);
        }
    }

    /// As for `Handle::install`, and for the shutdown.
    fn keep_from_parking(&self) {
        self.parking_off.store(true, SeqCst);
        fence(SeqCst);
        if self.idle.unpark_any().is_some() {
            self.woken.notify();
        }
    }

    /// Both workers are at the bottom again.
    fn check(&self) {
        self.use_copies_of_worker_1(usize::MAX, StackPlace::Bottom);
        while let Some(job) = self.find(&Worker::new(0)) {
            match job {
                RayonJob::Drain => self.drain(&mut Worker::new(0)),
                RayonJob::Copy(copies) => {
                    self.arrive(&mut Worker::new(0), copies, StackPlace::Bottom);
                }
            }
        }
        assert!(self.have_all_run());
        assert!(self.is_empty());
        // No drain job is counted that no worker has.
        for _ in 0..WORKERS {
            assert_eq!(self.idle.notify(), Wakeup::Spawn);
            self.idle.found(|| true);
        }
    }
}

/// Worker 1 is inside a job of rayon's until all jobs of the lane have run, and comes to no copy.
/// Worker 0 comes to drain jobs and copies in its turns of rayon, and where it is idle.
#[test]
fn no_job_waits_for_a_worker_that_does_not_come_to_its_copy() {
    for (parks, used_up) in [(false, 0), (true, 0), (false, 2)] {
        model(move || {
            let lane = LaneModel::with_a_job(parks);
            let worker = thread::spawn({
                let lane = lane.clone();
                move || lane.run_worker_0(used_up)
            });
            for _ in 1..JOBS {
                lane.push();
            }
            lane.keep_from_parking();
            worker.join().unwrap();
            lane.check();
        });
    }
}

/// Worker 1 comes to its copies while worker 0 declines, settles or takes its own: at the bottom
/// of its stack, or deeper, where it uses them up.
#[test]
fn one_worker_takes_a_broadcast() {
    for at in [StackPlace::Bottom, StackPlace::Waiting] {
        model(move || {
            let lane = LaneModel::with_a_job(false);
            let workers = [
                thread::spawn({
                    let lane = lane.clone();
                    move || lane.run_worker_0(0)
                }),
                thread::spawn({
                    let lane = lane.clone();
                    move || lane.use_copies_of_worker_1(2, at)
                }),
            ];
            for _ in 1..JOBS {
                lane.push();
            }
            for worker in workers {
                worker.join().unwrap();
            }
            lane.check();
        });
    }
}
