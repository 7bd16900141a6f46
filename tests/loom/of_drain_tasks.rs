//! The drain tasks of the runtime backend and the lane's queue, and the workers of a stream and
//! its chunks: two crates have the same protocol.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::fence;
use loom::thread;

use crate::drain_tasks::DrainTasks;
use crate::large_model;
use crate::sync::Queue;
use crate::workers::Workers;

trait Protocol: Send + Sync + 'static {
    fn new(most: usize) -> Self;
    fn try_add(&self) -> bool;
    fn try_end(&self, is_empty: impl FnOnce() -> bool) -> bool;
}

macro_rules! protocol {
    ($name:ty) => {
        impl Protocol for $name {
            fn new(most: usize) -> Self {
                Self::new(most)
            }
            fn try_add(&self) -> bool {
                self.try_add()
            }
            fn try_end(&self, is_empty: impl FnOnce() -> bool) -> bool {
                self.try_end(is_empty)
            }
        }
    };
}
protocol!(DrainTasks);
protocol!(Workers);

/// A lane of the runtime backend, as in `pool/tokio.rs`. A thread that spawns a drain
/// task also plays the worker that runs it.
struct LaneModel<P> {
    queue: Queue<bool>,
    drain_tasks: P,
    /// Counted outside of the model, so that they order nothing there.
    ran: AtomicUsize,
    live: AtomicUsize,
    most: usize,
}

impl<P: Protocol> LaneModel<P> {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(),
            drain_tasks: P::new(most),
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

fn every_job_runs<P: Protocol>(most: usize) {
    large_model(move || {
        let lane = LaneModel::<P>::new(most);
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
    every_job_runs::<DrainTasks>(1);
    every_job_runs::<Workers>(1);
}

#[test]
fn every_job_runs_with_two_drain_tasks() {
    every_job_runs::<DrainTasks>(2);
    every_job_runs::<Workers>(2);
}
