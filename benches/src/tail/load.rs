//! A CPU load that keeps a lane saturated: always the same number of jobs in flight.
//!
//! One feeder for all contenders: a plain thread of its own, which sleeps until a job has ended and
//! submits the next. It is woken as often as jobs end (some hundred times a second) and runs for
//! microseconds. The alternative, that a job submits its successor where it ends, is cheaper but
//! not the same for all: from inside, Tokio and rayon put it into their workers' own last-in
//! first-out slots, ahead of whatever waits (the server's task among them).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use super::job::{End, Job};
use super::lanes::Lane;
use super::work::Work;

/// A lane under load.
pub struct Load {
    completed: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    feeder: JoinHandle<()>,
}

impl Load {
    pub fn start(lane: Lane, work: Work) -> Self {
        let completed = Arc::new(AtomicU64::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let feeder = {
            let (completed, stopping) = (completed.clone(), stopping.clone());
            thread::Builder::new()
                .name("feeder".to_owned())
                .spawn(move || feed(lane, work, completed, &stopping))
                .unwrap()
        };
        Self {
            completed,
            stopping,
            feeder,
        }
    }

    /// How many jobs have been computed to their end by now.
    pub fn completed(&self) -> u64 {
        self.completed.load(Relaxed)
    }

    /// Lets the jobs in flight end, then takes the lane down.
    ///
    /// # Panics
    /// If the lane lost a job: then its jobs a second mean nothing.
    pub fn stop(self) {
        self.stopping.store(true, Relaxed);
        self.feeder.join().unwrap();
    }
}

fn feed(lane: Lane, work: Work, completed: Arc<AtomicU64>, stopping: &AtomicBool) {
    let (end, ends) = mpsc::channel();
    let submit = || (lane.submit)(Job::new(work, completed.clone(), end.clone()));
    (0..lane.in_flight).for_each(|_| submit());
    let mut in_flight = lane.in_flight;
    while in_flight > 0 {
        match ends.recv().unwrap() {
            End::Completed if stopping.load(Relaxed) => in_flight -= 1,
            End::Completed => submit(),
            End::Lost => panic!("the lane dropped a job that it had not run"),
        }
    }
}
