//! The drain tasks of the runtime backend and the lane's queue, and the workers of a stream and
//! its chunks.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::fence;
use loom::thread;

use crate::drain_tasks::DrainTasks;
use crate::large_model;
use crate::sync::Queue;

/// A lane of the runtime backend, as in `pool/tokio/mod.rs`. A thread that spawns a drain
/// task also plays the worker that runs it.
struct LaneModel {
    queue: Queue<bool>,
    drain_tasks: DrainTasks,
    /// Counted outside of the model, so that they order nothing there.
    ran: AtomicUsize,
    live: AtomicUsize,
    most: usize,
}

impl LaneModel {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(),
            drain_tasks: DrainTasks::new(most),
            ran: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            most,
        })
    }

    /// Submits a job that yields once, if `yields`.
    fn submit(&self, yields: bool) {
        self.queue.push(yields);
        fence(SeqCst);
        if self.drain_tasks.try_add() {
            self.drain();
        }
    }

    fn drain(&self) {
        assert!(self.live.fetch_add(1, SeqCst) < self.most);
        loop {
            match self.queue.pop() {
                Some(true) => self.queue.push(false),
                Some(false) => drop(self.ran.fetch_add(1, SeqCst)),
                None => {
                    self.live.fetch_sub(1, SeqCst);
                    if self.drain_tasks.try_end(|| self.queue.is_empty()) {
                        break;
                    }
                    self.live.fetch_add(1, SeqCst);
                }
            }
        }
    }
}

fn every_job_runs(most: usize) {
    large_model(move || {
        let lane = LaneModel::new(most);
        let other = thread::spawn({
            let lane = lane.clone();
            move || {
                lane.submit(true);
                lane.submit(false);
            }
        });
        lane.submit(false);
        lane.submit(false);
        other.join().unwrap();
        assert_eq!(lane.ran.load(SeqCst), 4);
        assert!(lane.drain_tasks.try_add(), "none is live");
    });
}

#[test]
fn every_job_runs_with_one_drain_task() {
    every_job_runs(1);
}

#[test]
fn every_job_runs_with_two_drain_tasks() {
    every_job_runs(2);
}
